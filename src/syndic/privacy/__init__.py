"""Who is protected, what was done with their data, what it costs, and the ledger that remembers it."""

from syndic.privacy.account import Accountant as Accountant
from syndic.privacy.account import curve as curve
from syndic.privacy.account import epsilon_of as epsilon_of
from syndic.privacy.account import gaussian_epsilon as gaussian_epsilon
from syndic.privacy.account import gaussian_sigma as gaussian_sigma
from syndic.privacy.account import mu_squared_for as mu_squared_for
from syndic.privacy.account import pure_for as pure_for
from syndic.privacy.account import rho_for as rho_for
from syndic.privacy.account import zcdp_epsilon as zcdp_epsilon
from syndic.privacy.chain import Entry as Entry
from syndic.privacy.cost import Cost as Cost
from syndic.privacy.cost import joint_cost as joint_cost
from syndic.privacy.event import ApproximateEvent as ApproximateEvent
from syndic.privacy.event import ConcentratedEvent as ConcentratedEvent
from syndic.privacy.event import Event as Event
from syndic.privacy.event import GaussianEvent as GaussianEvent
from syndic.privacy.event import PureEvent as PureEvent
from syndic.privacy.ledger import Called as Called
from syndic.privacy.ledger import Ledger as Ledger
from syndic.privacy.ledger import Reservation as Reservation
from syndic.privacy.ledger import Spending as Spending
from syndic.privacy.unit import Budget as Budget
from syndic.privacy.unit import Unit as Unit
from syndic.privacy.unit import check_delta as check_delta
from syndic.privacy.unit import default_delta as default_delta
