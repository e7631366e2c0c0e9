"""Units, events, costs and budgets, and the ledger that records them."""

from syndic.privacy.chain import Called as Called
from syndic.privacy.chain import Entry as Entry
from syndic.privacy.concentrated import rho_for as rho_for
from syndic.privacy.concentrated import zcdp_epsilon as zcdp_epsilon
from syndic.privacy.cost import Cost as Cost
from syndic.privacy.cost import Price as Price
from syndic.privacy.cost import at_delta as at_delta
from syndic.privacy.cost import joint_cost as joint_cost
from syndic.privacy.cost import pure_for as pure_for
from syndic.privacy.cost import shown as shown
from syndic.privacy.covered import Account as Account
from syndic.privacy.event import ApproximateEvent as ApproximateEvent
from syndic.privacy.event import ConcentratedEvent as ConcentratedEvent
from syndic.privacy.event import Event as Event
from syndic.privacy.event import GaussianEvent as GaussianEvent
from syndic.privacy.event import PureEvent as PureEvent
from syndic.privacy.gaussian import gaussian_epsilon as gaussian_epsilon
from syndic.privacy.gaussian import mu_squared_for as mu_squared_for
from syndic.privacy.ledger import Ledger as Ledger
from syndic.privacy.spending import Spending as Spending
from syndic.privacy.spending import StudySpending as StudySpending
from syndic.privacy.spending import cost_sentence as cost_sentence
from syndic.privacy.unit import Budget as Budget
from syndic.privacy.unit import Unit as Unit
from syndic.privacy.unit import check_delta as check_delta
from syndic.privacy.unit import default_delta as default_delta
