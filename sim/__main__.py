"""`python -m sim` is `slotsim`."""

from sim.cli import main

if __name__ == "__main__":
    main()
