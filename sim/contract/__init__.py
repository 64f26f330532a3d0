"""What exists, and what engines take and give. Nothing comes in; every later room takes it out of here."""
