"""Questions over many simulations. Scenarios in; flips, sizes, sensitivities, policies out."""
