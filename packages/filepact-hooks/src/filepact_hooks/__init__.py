"""Hooks: agents' programs ask before their own tools change something, and tell afterwards.

`client` is what a host starts for each event, `daemon` the process that answers, `service` what is
done for an event, and `agents` how each agent writes events and wants its answers.
"""
