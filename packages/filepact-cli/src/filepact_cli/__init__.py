"""The command for people: look at what agents did, take it back, and do the same by hand.

It reads the environment, the home folder and the terminal.  Every command answers a value; `screen`
alone turns it into bytes, so that nothing a file or an agent wrote can steer a terminal.
"""
