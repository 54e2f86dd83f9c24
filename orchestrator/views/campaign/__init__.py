"""Commands that show a campaign, and leave requests for the orchestrator at work. None of them runs one."""
