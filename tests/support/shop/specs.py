"""Eight kinds of documents of the shop, as document specs in YAML.

| index      | what it has of its own                                                                         |
|------------|------------------------------------------------------------------------------------------------|
| orders     | `where`, soft delete by a DATETIME, routing, a table twice, an array with filter, order, limit |
| products   | `where` as a mapping, soft delete by a TINYINT, a link table, a self join two deep, bytes      |
| customers  | keys above 2**63, one-to-one by a unique key, arrays inside arrays                             |
| categories | a text key that ignores case, a self join both ways, a link table at the third level           |
| lines      | a composite id, a join on two columns to the root's own table                                  |
| stock      | of one table: `where` over integers, soft delete, routing, JSON, bytes and a constant          |
| codes      | of one table: a text key that ignores case                                                     |
| positions  | of one table: a composite id, routing                                                          |

Those of one table are built from the log alone, see FROM_LOG.
"""

_ORDERS = """
index: orders
alias: all-orders
root:
  table: shop.orders
  id: id
  routing: billing_id
  where: "state <> 'draft'"
  soft_delete: deleted_at
  fields:
    number: order_no
    state: state
    channel: {value: web}
    total: {column: total, type: float}
    gross: {sql: "total * 1.2", type: float}
    is_paid: {sql: "state IN ('paid', 'shipped')", type: boolean}
    placed_at: placed_at
    paid_at: paid_at
    due: due
  joins:
    billing:
      table: shop.customer
      on: {billing_id: id}
      fields: [first_name, last_name]
      joins: {country: {table: shop.country, on: {country_id: id}, fields: [code, name]}}
    shipping:
      table: shop.customer
      on: {shipping_id: id}
      fields: [last_name, points]
      joins: {country: {table: shop.country, on: {country_id: id}, fields: [name]}}
    store:
      table: shop.store
      on: {store_id: id}
      fields: [name, city]
      joins:
        owner:
          table: shop.customer
          on: {owner_id: id}
          fields: [last_name]
          joins: {country: {table: shop.country, on: {country_id: id}, fields: [name, vat]}}
    lines:
      table: shop.order_line
      many: true
      on: {id: order_id}
      filter: "quantity > 0"
      order: ["-price", position]
      limit: 3
      fields: [position, quantity, price]
      joins:
        product:
          table: shop.product
          on: {product_id: id}
          fields: [sku, name]
          joins: {category: {table: shop.category, on: {category_code: code}, fields: [name]}}
"""

_PRODUCTS = """
index: products
alias: taken
root:
  table: shop.product
  where: {state: [active, sold out]}
  soft_delete: deleted
  fields: [sku, {title: name}, description, price, weight, stock, state, guid, attributes, updated_at]
  joins:
    store:
      table: shop.store
      on: {store_id: id}
      fields: [name, city]
      joins: {country: {table: shop.country, on: {country_id: id}, fields: [code, vat]}}
    category:
      table: shop.category
      on: {category_code: code}
      fields: [code, name]
      joins:
        parent:
          table: shop.category
          on: {parent_code: code}
          fields: [code, name]
          joins: {parent: {table: shop.category, on: {parent_code: code}, fields: [name]}}
    tags:
      table: shop.tag
      many: true
      through: {table: shop.product_tag, on: {id: product_id}, to: {tag_id: id}}
      order: name
      fields: [name]
    sales:
      table: shop.order_line
      many: true
      on: {id: product_id}
      order: "-quantity"
      limit: 4
      fields: [quantity, price]
      joins:
        order:
          table: shop.orders
          on: {order_id: id}
          fields: [order_no]
          joins: {billing: {table: shop.customer, on: {billing_id: id}, fields: [last_name]}}
"""

_CUSTOMERS = """
index: customers
root:
  table: shop.customer
  fields:
    name: {sql: "CONCAT_WS(' ', first_name, last_name)", type: text}
    points: points
    born: born
    level: {value: 7}
  joins:
    country: {table: shop.country, on: {country_id: id}, fields: [name]}
    store:
      table: shop.store
      on: {id: owner_id}
      fields: [name]
      joins:
        products:
          table: shop.product
          many: true
          on: {id: store_id}
          filter: "deleted = 0"
          order: "-id"
          limit: 2
          fields: [sku, stock]
    orders:
      table: shop.orders
      many: true
      on: {id: billing_id}
      filter: "total > 10 AND state <> 'draft'"
      order: [state, "-placed_at"]
      limit: 3
      fields: [order_no, state, placed_at]
      joins:
        lines:
          table: shop.order_line
          many: true
          on: {id: order_id}
          order: position
          fields: [quantity]
          joins: {product: {table: shop.product, on: {product_id: id}, fields: [name]}}
"""

_CATEGORIES = """
index: categories
root:
  table: shop.category
  id: code
  fields: [code, name, place]
  joins:
    parent: {table: shop.category, on: {parent_code: code}, fields: [code, name]}
    children:
      table: shop.category
      many: true
      on: {code: parent_code}
      order: [place, name]
      fields: [code, place]
      joins:
        products:
          table: shop.product
          many: true
          on: {code: category_code}
          filter: "state = 'active'"
          order: "-price"
          limit: 3
          fields: [sku, price]
          joins:
            tags:
              table: shop.tag
              many: true
              through: {table: shop.product_tag, on: {id: product_id}, to: {tag_id: id}}
              fields: [name]
"""

_LINES = """
index: lines
root:
  table: shop.order_line
  id: [order_id, position]
  routing: order_id
  where: "quantity > 0 AND price IS NOT NULL"
  fields:
    quantity: quantity
    price: price
    amount: {sql: "quantity * price", type: float}
  joins:
    order:
      table: shop.orders
      on: {order_id: id}
      fields: [order_no, state, due]
      joins:
        shipping:
          table: shop.customer
          on: {shipping_id: id}
          fields: [first_name, last_name]
          joins: {country: {table: shop.country, on: {country_id: id}, fields: [name]}}
    bundle:
      table: shop.order_line
      on: {order_id: order_id, bundle_position: position}
      fields: [quantity, price]
    product:
      table: shop.product
      on: {product_id: id}
      fields: [sku]
      joins:
        tags:
          table: shop.tag
          many: true
          through: {table: shop.product_tag, on: {id: product_id}, to: {tag_id: id}}
          order: ["-name"]
          limit: 2
          fields: [name]
"""

_STOCK = """
index: stock
root:
  table: shop.product
  where: {store_id: [-3, -2, -1, 0, 1, 2, 3, 4, 5, 6]}
  soft_delete: deleted
  routing: store_id
  fields:
    sku: sku
    title: name
    description: description
    price: price
    weight: weight
    stock: stock
    state: state
    kind: {value: goods}
    guid: guid
    attributes: attributes
    updated_at: updated_at
"""

_CODES = """
index: codes
root:
  table: shop.category
  fields: [code, parent_code, name, place]
"""

_POSITIONS = """
index: positions
root:
  table: shop.order_line
  id: [order_id, position]
  routing: order_id
  fields: [quantity, price, {product: product_id}]
"""

_TEXTS = {
    "orders": _ORDERS,
    "products": _PRODUCTS,
    "customers": _CUSTOMERS,
    "categories": _CATEGORIES,
    "lines": _LINES,
    "stock": _STOCK,
    "codes": _CODES,
    "positions": _POSITIONS,
}
INDEXES = tuple(_TEXTS)
FROM_LOG = ("stock", "codes", "positions")
"""Documents that the log alone says, without a read."""


def spec_texts(database: str, suffix: str = "") -> dict[str, str]:
    """Return the document specs of a shop in this database by the name of the index, to which specs add `suffix`."""
    return {
        index: text.replace("shop.", f"{database}.").replace(f"index: {index}", f"index: {index}{suffix}").lstrip()
        for index, text in _TEXTS.items()
    }
