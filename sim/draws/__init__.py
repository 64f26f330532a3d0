"""Everything random, drawn before an engine starts. A scenario and a replication in, arrays out."""
