"""What is said once and looks different everywhere: sections, and their renderers for terminals, Markdown and JSON."""
