"""Rollouts of language models and agents: turns, rewards, versions and tokens, and later the fate of each."""
