"""What exists and what engines take and give, said once; all later stages read it."""
