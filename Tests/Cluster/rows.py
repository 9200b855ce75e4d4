"""All rows of the test, in the order in which they run."""

import rows_contacts
import rows_engines
import rows_letters
import rows_links
import rows_nodes
import rows_relays
import rows_strangers

ALL = [
    *rows_nodes.ALL, *rows_contacts.ALL, *rows_links.ALL, *rows_engines.ALL, *rows_relays.ALL, *rows_strangers.ALL, *rows_letters.ALL]
