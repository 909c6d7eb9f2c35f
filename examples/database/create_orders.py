"""Create orders.db, with the orders of two tenants."""

import sqlite3

ORDERS = [
    ("acme", "A-1042", "lamp", "shipped on 20 November"),
    ("acme", "A-1043", "desk", "waiting for payment"),
    ("globex", "G-7", "chair", "delivered"),
]

with sqlite3.connect("orders.db") as database:
    database.execute(
        "CREATE TABLE orders (tenant TEXT, number TEXT, item TEXT, state TEXT, PRIMARY KEY (tenant, number))"
    )
    database.executemany("INSERT INTO orders VALUES (?, ?, ?, ?)", ORDERS)
database.close()
