PRICES = {"apple": 3, "pear": 4}


def total(basket):
    return sum(PRICES[fruit] for fruit in basket)
