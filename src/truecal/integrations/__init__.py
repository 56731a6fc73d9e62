"""Where other libraries meet this one; each module needs the library that it is named after."""
