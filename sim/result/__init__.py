"""All plans over their replications. Runs in; intervals, labels, the decision, objectives out."""
