"""What a user can cause. Everything here ends as one line on stderr and exit status 2.

UserError
├── ConfigError       a wrong key, type or value in a configuration, or options that exclude each other
├── DataError         text that cannot be used: encoding, line counts, a malformed file
└── CheckpointError   a run directory that is missing, truncated, foreign or of another version
"""


class UserError(Exception):
    """The message says: `file:line: what is wrong, what was expected, what to do`."""


class ConfigError(UserError):
    pass


class DataError(UserError):
    pass


class CheckpointError(UserError):
    pass
