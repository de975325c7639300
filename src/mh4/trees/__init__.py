"""Work with gold trees that needs no model: evaluation, coverage, closest trees and optimal computations."""
