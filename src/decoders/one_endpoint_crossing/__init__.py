"""1-endpoint-crossing parsing (Pitler, Kannan & Marcus 2013; Pitler 2014), completed."""

from .first_order import OneEndpointCrossingFirstOrder
from .third_order import OneEndpointCrossing
from .trees import checked_one_endpoint_crossing, is_one_endpoint_crossing, parts_of_tree

__all__ = [
    "OneEndpointCrossing",
    "OneEndpointCrossingFirstOrder",
    "checked_one_endpoint_crossing",
    "is_one_endpoint_crossing",
    "parts_of_tree",
]
