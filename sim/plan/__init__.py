"""Plan arithmetic: one request alone. Branches and prices in; schedules, costs, four criteria out."""
