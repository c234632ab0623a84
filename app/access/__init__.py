"""Who may do what: tokens for programs, sessions for browsers, a header for people behind a proxy that knows them.

Every route says which role it asks for (``roles.require``), and one gate before all of them (``gate.Gate``) asks who is
calling (``callers``). A route that says nothing is answered to nobody.
"""
