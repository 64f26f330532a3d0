"""slotsim: is running a workflow's LLM calls in parallel worth it, off-peak and at peak?"""
