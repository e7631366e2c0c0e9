"""The parties' steps of a secure product, alike in every method that multiplies."""

import abc
from functools import partial
from typing import Any

from numpy.typing import NDArray

from syndic.kernel import Method, Nothing, Party, step
from syndic.mpc.product import SecureProduct
from syndic.mpc.product_messages import ProductChallenge, ProductInbox, ProductOpening, ProductProof, ProductTurn


class PlainProductSteps(Method):
    """A method says which product is next and what the rows of a party's matrix are; its keys are the product's."""

    @abc.abstractmethod
    def product_at(self, party: Party[Any]) -> SecureProduct:
        """Return the product that the party is asked about."""

    @abc.abstractmethod
    def product_rows(self, party: Party[Any], start: int, stop: int) -> NDArray[Any]:
        """Return rows of the party's matrix. Private."""

    @step(reveals="sealed")
    def product_masked(self, party: Party, message: ProductTurn) -> ProductOpening:
        """Mask the rows of one chunk and seal them for the partners."""
        return self.product_at(party).mask(party, message, partial(self.product_rows, party))

    @step(reveals="sealed")
    def product_multiplied(self, party: Party, message: ProductInbox) -> Nothing:
        """Multiply the chunk by every partner's masked rows."""
        return self.product_at(party).multiply(party, message, partial(self.product_rows, party))


class ProductSteps(PlainProductSteps):
    """The same where parties prove their rows."""

    @step(reveals="sealed")
    def product_proved(self, party: Party, message: ProductChallenge) -> ProductProof:
        """Prove that the masked rows of one chunk are one-hot, or not too long."""
        return self.product_at(party).prove(party, message, partial(self.product_rows, party))

    @step(reveals="sealed")
    def product_multiplied(self, party: Party, message: ProductInbox) -> Nothing:
        """Check the partners' proofs of the chunk and multiply it by their masked rows."""
        return self.product_at(party).multiply(party, message, partial(self.product_rows, party))
