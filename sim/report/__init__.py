"""Reports. Results and answers in; one HTML file that needs nothing else, Markdown and figures out."""
