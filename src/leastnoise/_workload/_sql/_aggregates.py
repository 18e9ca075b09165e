"""Translate COUNT, SUM, AVG and quantiles to expressions of released answers.

The operand of SUM or AVG is a sum of terms. A term is a factor times a measure, or times 1, in some
of the rows. So ``SUM(CASE WHEN refund THEN -amount ELSE amount END)`` is a difference of two
released sums. The mean of zeros and ones is a quotient of two released counts.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain
from typing import Any

from leastnoise._workload._sql._column_references import ColumnReader
from leastnoise._workload._sql._conditions import (
    EVERYTHING,
    CellBox,
    empty_condition_error,
    intersect,
    merge,
    overlap,
    subtract,
)
from leastnoise._workload._sql._expression_values import (
    Node,
    constant_number,
    function_name,
    refused,
)
from leastnoise._workload._sql._statement import Aggregate
from leastnoise._workload._workload import quantile_queries

Boxes = tuple[CellBox, ...]

_NUMBER_TYPES = ("DOUBLE", "FLOAT", "DECIMAL", "BIGDECIMAL", "REAL")
_ADVICE = {
    "Min": "Take a quantile such as 0.01, because one person decides an extreme",
    "Max": "Take a quantile such as 0.99, because one person decides an extreme",
    **dict.fromkeys(
        ("AnyValue", "First", "Last", "ArrayAgg", "GroupConcat"),
        "Name the column in GROUP BY, which lists its values",
    ),
    "Mode": "Take the largest group: GROUP BY the column ORDER BY COUNT(*) DESC LIMIT 1",
    "LogicalOr": "Count the rows, with COUNT_IF: one person decides whether there is any",
    "LogicalAnd": "Count the other rows, with COUNT_IF: one person decides whether there is any",
}
_USUAL_ADVICE = (
    "Answers are COUNT, SUM, AVG, STDDEV, VARIANCE, PERCENTILE_CONT and MEDIAN, each of one "
    "column, and CORR, COVAR_POP, REGR_SLOPE and others like these of two columns"
)
_SPREAD_KINDS = {
    "Stddev": "std_dev_sample",
    "StddevSamp": "std_dev_sample",
    "StddevPop": "std_dev",
    "Variance": "variance_sample",
    "VariancePop": "variance",
}
_PAIR_KINDS = {
    "Corr": "correlation",
    "CovarPop": "covariance",
    "CovarSamp": "covariance_sample",
    "RegrSlope": "slope",
    "RegrIntercept": "intercept",
    "RegrR2": "r2",
    "RegrCount": "complete_rows",
}
_TWO_MEASURES = (
    "It needs two different measures in the rows of one condition, such as CORR(pay, age) or "
    "REGR_SLOPE(2 * pay, age), in groups that are released unchanged; REGR_INTERCEPT "
    "needs plain measures. Write a statement for each condition"
)
_ONE_MEASURE = (
    "The deviation needs one measure in the rows of one condition, such as STDDEV(pay) or "
    "VAR_POP(2 * pay + 1), in groups that are released unchanged. Write a statement "
    "for each condition"
)
_OF_OTHER_COLUMNS = (
    "Write COUNT(*) if every row has another value. To count the values of an attribute that have "
    "rows, count groups: the rows of a subquery with GROUP BY column HAVING COUNT(*) > 20"
)
_DIFFERENT_UNITS = (
    "These are answered under conditions that AND joins. Name the attributes in GROUP BY, or "
    "write a statement for each part"
)


@dataclass(frozen=True, slots=True)
class OperandTerm:
    """One summand in the operand of SUM or AVG: a factor times a measure or 1.

    Attributes:
        factor: the factor of the term.
        kind: "rows", "values", "sum" or "weighted", as for an `Aggregate`.
        of: the measure of the term.
        weight: the measure that is the weight of the term.
        boxes: the cell boxes of the rows in which the summand counts.
        is_counted: whether AVG counts its rows. The rows of ``1`` in ``amount + 1`` are not
            counted, because ``amount`` counts them already.
    """

    factor: Fraction
    kind: str
    of: str = ""
    weight: str = ""
    boxes: Boxes = EVERYTHING
    is_counted: bool = True


class AggregateReader:
    """Translates the aggregate functions of one SELECT to released answers."""

    def __init__(
        self,
        columns: ColumnReader,
        unit: str | None,
        where: Boxes,
        answer_node: Callable[[Aggregate], Node],
        *,
        are_added_up: bool = False,
    ) -> None:
        """Keep the settings that the aggregates of a SELECT share.

        Args:
            columns: an object that finds the attributes and measures of columns.
            unit: the column of the privacy unit.
            where: the boxes of WHERE. If there is one box, it becomes the condition of the
                selection. If there are several, each aggregate is computed over every box.
            answer_node: returns the column of a released answer.
            are_added_up: whether each group consists of the rows of several released groups.
        """
        from sqlglot import exp

        self.exp: Any = exp
        self._columns = columns
        self._unit = unit
        self._where = where
        self._answer_node = answer_node
        self._are_added_up = are_added_up

    def expression(self, node: Node, boxes: Boxes | None = None) -> Node:
        """Translate an aggregate function to an expression of released answers.

        Args:
            node: the aggregate.
            boxes: the rows that FILTER keeps; None for all rows.

        Raises:
            InputError: the aggregate cannot be answered.
        """
        exp = self.exp
        boxes = EVERYTHING if boxes is None else boxes
        if isinstance(node, exp.Filter):
            condition = self._columns.boxes("FILTER", node.expression.this)
            rows = intersect("FILTER", boxes, condition)
            intersect("WHERE with FILTER", self._where, rows)  # raises if no row is left
            return self.expression(node.this, rows)
        if isinstance(node, exp.WithinGroup):
            return self._ordered_quantile(node, boxes)
        quantiles = (
            *(exp.PercentileCont, exp.PercentileDisc, exp.Quantile),
            *(exp.ApproxQuantile, exp.Median),
        )
        if isinstance(node, quantiles):
            share_node = node.args.get("quantile") or node.args.get("expression")
            is_median = share_node is None
            if is_median:
                share = Fraction(1, 2)
            else:
                share = read_number(function_name(node), share_node)
            return self._quantile(node, node.this, share, boxes)
        if isinstance(node, exp.CountIf):
            condition = self._columns.boxes("COUNT_IF", node.this)
            return self._rows(node, intersect("COUNT_IF", boxes, condition))
        if isinstance(node, exp.Count) and isinstance(node.this, exp.Distinct):
            return self._distinct_count(node, node.this.expressions, boxes)
        if isinstance(node, exp.ApproxDistinct):
            return self._distinct_count(node, [node.this], boxes)
        if isinstance(node, exp.Count):
            return self._count(node, boxes)
        if isinstance(node, (exp.Sum, exp.Avg)):
            return self._sum_or_mean(node, boxes)
        name = type(node).__name__
        read_deviations = {
            **dict.fromkeys(_SPREAD_KINDS, self._variance_or_deviation),
            **dict.fromkeys(_PAIR_KINDS, self._pair),
        }
        if name in read_deviations:
            return read_deviations[name](node, boxes)
        raise refused(node.sql("duckdb"), _ADVICE.get(name, _USUAL_ADVICE))

    # --- answers ----------------------------------------------------------------------------------

    def _answers(self, template: Aggregate, boxes: Boxes) -> list[Node]:
        """Return the columns of an aggregate's answers, one for each disjoint box."""
        conditions = self._within_where(merge(self._columns.domain, boxes))
        return [
            self._answer_node(replace(template, condition=condition)) for condition in conditions
        ]

    def _within_where(self, boxes: Boxes) -> Boxes:
        """Intersect boxes with the condition of WHERE."""
        conditions = overlap("WHERE", boxes, self._where)
        if len(self._where) > 1:
            return merge(self._columns.domain, conditions)
        return tuple(box for box in boxes if overlap("WHERE", [box], self._where))

    def _rows(self, node: Node, boxes: Boxes) -> Node:
        """Translate COUNT(*) to a released count of rows."""
        return self._total(node, self._answers(Aggregate(node.sql("duckdb"), "rows"), boxes))

    def _total(self, node: Node, answers: Sequence[Node]) -> Node:
        """Return the sum of expressions, as an expression.

        Raises:
            InputError: there are no expressions, because no row fulfils the conditions.
        """
        if not answers:
            names = self._columns.attribute_names(node.key.upper(), _without_measures(self, node))
            raise empty_condition_error(node.sql("duckdb"), *names)
        total = answers[0]
        for answer in answers[1:]:
            total = self.exp.Add(this=total, expression=answer)
        if len(answers) == 1:
            return total
        return self.exp.Paren(this=total)

    def _of_one_box(self, node: Node, template: Aggregate, boxes: Boxes) -> Node:
        """Return the answer of an aggregate that is not additive over boxes."""
        if self._are_added_up:
            raise refused(
                f"{node.sql('duckdb')} by an expression of several attributes",
                "Name each attribute separately in GROUP BY",
            )
        answers = self._answers(template, boxes)
        if len(answers) > 1:
            raise refused(f"{node.sql('duckdb')} with OR across attributes", _DIFFERENT_UNITS)
        return self._total(node, answers)

    # --- quantiles and units ----------------------------------------------------------------------

    def _ordered_quantile(self, node: Node, boxes: Boxes) -> Node:
        """Translate PERCENTILE_CONT(share) WITHIN GROUP (ORDER BY column)."""
        exp = self.exp
        if not isinstance(node.this, (exp.PercentileCont, exp.PercentileDisc)):
            raise refused(
                node.sql("duckdb"),
                "Write PERCENTILE_CONT(share) WITHIN GROUP (ORDER BY column). For the most "
                "frequent value, use ORDER BY COUNT(*) DESC with GROUP BY of the column",
            )
        (ordered,) = node.expression.expressions
        share = read_number(function_name(node.this), node.this.this)
        share = 1 - share if ordered.args.get("desc") else share
        return self._quantile(node, ordered.this, share, boxes)

    def _quantile(self, node: Node, column: Node, share: Fraction, boxes: Boxes) -> Node:
        """Translate a quantile of a column to an expression of released answers."""
        attribute, level_name = self._columns.find("A quantile", column)
        if level_name is not None:
            raise refused(
                f"A quantile of the level {level_name}", "Compute it for a numeric attribute"
            )
        quantile_queries(self._columns.domain, attribute, [share])  # whether it has numbers
        quantile = Aggregate(node.sql("duckdb"), "quantile", attribute, share)
        return self._of_one_box(node, quantile, boxes)

    def _distinct_count(self, node: Node, columns: Sequence[Node], boxes: Boxes) -> Node:
        """Translate COUNT(DISTINCT unit), which may have a condition in a CASE."""
        exp = self.exp
        columns = [column.unnest() for column in columns]
        if len(columns) == 1 and isinstance(columns[0], (exp.Case, exp.If)):
            branches = [
                (branch_boxes, result)
                for branch_boxes, result in self._branches("COUNT of CASE", columns[0])
                if not isinstance(result, exp.Null)
            ]
            results = {result.sql("duckdb").lower() for _, result in branches}
            if len(results) == 1:
                branch_boxes = tuple(
                    chain.from_iterable(boxes_of_branch for boxes_of_branch, _ in branches)
                )
                rows = intersect("COUNT of CASE", boxes, branch_boxes)
                return self._distinct_count(node, [branches[0][1]], rows)
        names = [column.name or column.sql("duckdb") for column in columns]
        are_columns = all(isinstance(column, exp.Column) for column in columns)
        is_unit = self._unit is not None and [name.lower() for name in names] == [
            self._unit.lower()
        ]
        if self._unit is None or not is_unit or not are_columns:
            if self._unit:
                state = f"that is {self._unit}"
            else:
                state = "none is declared: every row is a unit"
            raise refused(
                f"COUNT(DISTINCT {', '.join(names)})",
                f"Only units are counted, by the column of [privacy] unit; {state}. "
                f"{_OF_OTHER_COLUMNS}",
            )
        return self._of_one_box(node, Aggregate(node.sql("duckdb"), "units", self._unit), boxes)

    # --- COUNT, SUM and AVG -----------------------------------------------------------------------

    def _count(self, node: Node, boxes: Boxes) -> Node:
        """Translate COUNT(x) to released answers.

        COUNT(x) counts the rows where x is not null.
        """
        counts = []
        for kind, measure, branch_boxes in self._merged(self._counted_rows(node.this, boxes)):
            aggregate = Aggregate(node.sql("duckdb"), kind, measure)
            counts += self._answers(aggregate, branch_boxes)
        return self._total(node, counts)

    def _counted_rows(self, node: Node | None, boxes: Boxes) -> Iterator[tuple[str, str, Boxes]]:
        """Yield the kind of answer, the measure and the boxes that COUNT counts."""
        exp = self.exp
        if node is None:  # COUNT() is COUNT(*)
            yield "rows", "", boxes
            return
        inner = self._without_cast(node.unnest())
        if isinstance(inner, exp.Null):
            return
        if isinstance(inner, (exp.Star, exp.Literal, exp.Boolean)) or self._is_unit(inner):
            yield "rows", "", boxes  # all rows have a unit, because rows without a unit are dropped
        elif isinstance(inner, (exp.Case, exp.If)):
            for branch_boxes, result in self._branches("COUNT of CASE", inner):
                yield from self._counted_rows(result, overlap("COUNT of CASE", boxes, branch_boxes))
        elif self.is_attribute_only(inner):
            is_not_null = exp.Not(this=exp.Is(this=inner.copy(), expression=exp.Null()))
            yield "rows", "", overlap("COUNT", boxes, self._columns.boxes("COUNT", is_not_null))
        else:
            yield "values", self._columns.measure("COUNT", inner), boxes

    def _is_unit(self, node: Node) -> bool:
        """Return whether an expression is the column of the privacy unit."""
        is_column = isinstance(node, self.exp.Column) and self._unit is not None
        if not is_column or node.name.lower() != str(self._unit).lower():
            return False
        return not self._columns.fitting_measures(node) and not self._columns.is_attribute(node)

    def is_attribute_only(self, node: Node) -> bool:
        """Return whether an expression is an attribute's column, not a measure's."""
        if not isinstance(node, self.exp.Column) or self._columns.fitting_measures(node):
            return False
        return self._columns.is_attribute(node)

    def _merged(
        self, counted_boxes: Iterator[tuple[str, str, Boxes]]
    ) -> list[tuple[str, str, Boxes]]:
        """Merge the boxes with the same kind of answer and the same measure."""
        boxes_of: dict[tuple[str, str], Boxes] = {}
        for kind, measure, boxes in counted_boxes:
            boxes_of[kind, measure] = (*boxes_of.get((kind, measure), ()), *boxes)
        return [(kind, measure, boxes) for (kind, measure), boxes in boxes_of.items()]

    def _sum_or_mean(self, node: Node, boxes: Boxes) -> Node:
        """Translate SUM or AVG; raise for DISTINCT."""
        if isinstance(node.this, self.exp.Distinct):
            raise refused(
                node.sql("duckdb"), "Leave DISTINCT out: only units are counted once, with COUNT"
            )
        if isinstance(node, self.exp.Sum):
            return self._sum(node, boxes)
        return self._mean(node, boxes)

    def _sum(self, node: Node, boxes: Boxes) -> Node:
        """Translate SUM to an expression of released answers."""
        return self._total(node, self._weighted_answers(node, self._terms(node, node.this, boxes)))

    def _weighted_answers(self, node: Node, terms: Sequence[OperandTerm]) -> list[Node]:
        """Return the released answer of each term times the term's factor."""
        scaled_answers = []
        for term in terms:
            if term.factor == 0:
                continue
            aggregate = Aggregate(node.sql("duckdb"), term.kind, term.of, weight=term.weight)
            answers = self._answers(aggregate, term.boxes)
            scaled_answers += [self._scaled(answer, term.factor) for answer in answers]
        return scaled_answers

    def _scaled(self, node: Node, factor: Fraction) -> Node:
        """Return a factor times an expression."""
        exp = self.exp
        if factor == 1:
            return node
        if factor == -1:
            return exp.Neg(this=node)
        literal = exp.Literal.number(repr(float(abs(factor))))
        return exp.Mul(this=exp.Neg(this=literal) if factor < 0 else literal, expression=node)

    def _mean(self, node: Node, boxes: Boxes) -> Node:
        """Translate AVG to a released mean, or to a quotient of sum and count."""
        exp = self.exp
        terms = self._terms(node, node.this, boxes)
        if any(term.kind == "weighted" for term in terms):
            raise refused(
                "AVG of an expression",
                "A weighted mean is SUM(weight * x) / SUM(weight)",
            )
        single = terms[0] if len(terms) == 1 else None
        if single is not None and single.kind == "sum" and not self._are_added_up:
            merged = self._within_where(merge(self._columns.domain, single.boxes))
            if len(merged) == 1:
                mean = Aggregate(node.sql("duckdb"), "mean", single.of, condition=merged[0])
                return self._scaled(self._answer_node(mean), single.factor)
        count_kinds = {"rows": "rows", "sum": "values"}
        counted = self._merged(
            (count_kinds[term.kind], term.of, term.boxes) for term in terms if term.is_counted
        )
        counts = []
        for kind, measure, branch_boxes in counted:
            aggregate = Aggregate(node.sql("duckdb"), kind, measure)
            counts += self._answers(aggregate, branch_boxes)
        divisor = exp.Nullif(this=self._total(node, counts), expression=exp.Literal.number(0))
        dividend = self._total(node, self._weighted_answers(node, terms))
        return exp.Paren(this=exp.Div(this=dividend, expression=divisor))

    def _variance_or_deviation(self, node: Node, boxes: Boxes) -> Node:
        """Translate a standard deviation or a variance to released answers."""
        kind = _SPREAD_KINDS[type(node).__name__]
        terms = [term for term in self._terms(node, node.this, boxes) if term.is_counted]
        if len(terms) != 1 or terms[0].kind != "sum" or self._are_added_up:
            raise refused(node.sql("duckdb"), _ONE_MEASURE)
        (term,) = terms
        merged = self._within_where(merge(self._columns.domain, term.boxes))
        if len(merged) != 1:
            raise refused(node.sql("duckdb"), _ONE_MEASURE)
        aggregate = Aggregate(node.sql("duckdb"), kind, term.of, condition=merged[0])
        if kind.startswith("variance"):
            factor = term.factor**2
        else:
            factor = abs(term.factor)
        return self._scaled(self._answer_node(aggregate), factor)

    def _pair(self, node: Node, boxes: Boxes) -> Node:
        """Translate a correlation, covariance or regression coefficient."""
        kind = _PAIR_KINDS[type(node).__name__]
        operands = [node.this, node.expression]
        if operands[1] is None or self._are_added_up:
            raise refused(node.sql("duckdb"), _TWO_MEASURES)
        all_terms = [self._terms(node, operand, boxes) for operand in operands]
        terms = [term for term in chain.from_iterable(all_terms) if term.is_counted]
        has_shift = sum(map(len, all_terms)) > len(terms)
        if len(terms) != len(operands) or any(term.kind != "sum" for term in terms):
            raise refused(node.sql("duckdb"), _TWO_MEASURES)
        first, second = terms
        rows = intersect(function_name(node), first.boxes, second.boxes)
        merged = self._within_where(merge(self._columns.domain, rows))
        is_plain = not has_shift and first.factor == second.factor == 1
        can_answer = (
            len(merged) == 1 and first.of != second.of and first.factor * second.factor != 0
        )
        if not can_answer or (kind == "intercept" and not is_plain):
            raise refused(node.sql("duckdb"), _TWO_MEASURES)
        text = node.sql("duckdb")
        pair = Aggregate(text, kind, first.of, on=second.of, condition=merged[0])
        return self._scaled(
            self._answer_node(pair), _pair_factor(kind, first.factor, second.factor)
        )

    # --- terms ------------------------------------------------------------------------------------

    def _terms(self, node: Node, operand: Node, boxes: Boxes) -> list[OperandTerm]:
        """Split the operand of SUM or AVG into terms, and merge equal terms."""
        collected: dict[tuple[Fraction, str, str, str, bool], Boxes] = {}
        for term in self._read_terms(node, operand, boxes):
            key = (term.factor, term.kind, term.of, term.weight, term.is_counted)
            collected[key] = (*collected.get(key, ()), *term.boxes)
        return [
            OperandTerm(factor, kind, name, weight, branch_boxes, is_counted)
            for (factor, kind, name, weight, is_counted), branch_boxes in collected.items()
            if branch_boxes
        ]

    def _read_terms(self, node: Node, operand: Node, boxes: Boxes) -> Iterator[OperandTerm]:
        """Split an operand into terms, which are counts and sums times factors."""
        exp = self.exp
        clause = function_name(node)
        inner = self._without_cast(operand.unnest())
        if isinstance(inner, exp.Null):
            return
        number = constant_number(inner)
        if number is not None:
            yield OperandTerm(number, "rows", boxes=boxes)
        elif isinstance(inner, (exp.Case, exp.If)):
            for branch_boxes, result in self._branches(f"{clause} of CASE", inner):
                yield from self._read_terms(node, result, overlap(clause, boxes, branch_boxes))
        elif isinstance(inner, exp.Coalesce) and self._is_zero_for_null(node, inner):
            yield from self._read_terms(node, inner.this, boxes)
        elif not isinstance(inner, exp.Column) or self.is_attribute_only(inner):
            yield from self._compound_terms(node, inner, boxes)
        else:
            yield OperandTerm(Fraction(1), "sum", self._columns.measure(clause, inner), boxes=boxes)

    def _is_zero_for_null(self, node: Node, coalesce: Node) -> bool:
        """Return whether COALESCE(x, 0) has the same sum as x."""
        values = coalesce.expressions
        return isinstance(node, self.exp.Sum) and [*map(constant_number, values)] == [0]

    def _compound_terms(self, node: Node, inner: Node, boxes: Boxes) -> Iterator[OperandTerm]:
        """Split an operand that is a condition, a multiple, or a shifted operand."""
        exp = self.exp
        clause = function_name(node)
        if self._columns.is_truth(inner):
            yield OperandTerm(
                Fraction(1), "rows", boxes=self._boxes_where_true(clause, inner, boxes)
            )
            negated = exp.Not(this=exp.Paren(this=inner.copy()))
            yield OperandTerm(
                Fraction(0), "rows", boxes=self._boxes_where_true(clause, negated, boxes)
            )
            return
        multiple = self._split_multiple(inner)
        shift = self._split_shift(inner)
        if multiple is not None:
            yield from self._multiples(node, *multiple, boxes)
        elif isinstance(inner, exp.Mul):
            yield self._weighted_term(inner, boxes)
        elif shift is not None:
            yield from self._shifted(node, *shift, boxes)
        else:
            self._columns.measure(clause, inner)  # raises

    def _split_multiple(self, inner: Node) -> tuple[Node, Fraction] | None:
        """Return the operand and the constant of a multiple, or None."""
        exp = self.exp
        if isinstance(inner, exp.Neg):
            return inner.this, Fraction(-1)
        if not isinstance(inner, (exp.Mul, exp.Div)):
            return None
        left_number = constant_number(inner.this)
        right_number = constant_number(inner.expression)
        if isinstance(inner, exp.Mul) and left_number is not None:
            return inner.expression, left_number
        if isinstance(inner, exp.Mul) and right_number is not None:
            return inner.this, right_number
        if isinstance(inner, exp.Div) and right_number:
            return inner.this, 1 / right_number
        return None

    def _split_shift(self, inner: Node) -> tuple[Node, Fraction, Fraction] | None:
        """Return operand, sign and constant of a sum with a constant, or None.

        The result is None if neither side of the sum is a constant.
        """
        exp = self.exp
        if not isinstance(inner, (exp.Add, exp.Sub)):
            return None
        sign = 1
        if isinstance(inner, exp.Sub):
            sign = -1
        right_number = constant_number(inner.expression)
        if right_number is not None:
            return inner.this, Fraction(1), sign * right_number
        left_number = constant_number(inner.this)
        if left_number is not None:
            return inner.expression, Fraction(sign), left_number
        return None

    def _boxes_where_true(self, clause: str, node: Node, boxes: Boxes) -> Boxes:
        """Intersect boxes with the rows that satisfy a condition."""
        return overlap(clause, boxes, self._columns.true_boxes(clause, node))

    def _multiples(
        self, node: Node, operand: Node, factor: Fraction, boxes: Boxes
    ) -> Iterator[OperandTerm]:
        """Yield the terms of an operand, with their factors multiplied."""
        for term in self._read_terms(node, operand, boxes):
            yield replace(term, factor=factor * term.factor)

    def _shifted(
        self, node: Node, operand: Node, factor: Fraction, shift: Fraction, boxes: Boxes
    ) -> Iterator[OperandTerm]:
        """Yield the terms of ``factor * operand + shift``.

        The shift is added only in rows in which ``operand`` is not null.
        """
        count_kinds = {"rows": "rows", "sum": "values"}
        for term in self._read_terms(node, operand, boxes):
            if term.kind not in count_kinds:
                raise refused(
                    f"{function_name(node)} of an expression", "Add the number afterwards"
                )
            yield replace(term, factor=factor * term.factor)
            if term.is_counted:
                kind = count_kinds[term.kind]
                yield replace(term, factor=shift, kind=kind, is_counted=False)

    def _weighted_term(self, product: Node, boxes: Boxes) -> OperandTerm:
        """Return the term of a product of two measures, one of them a weight."""
        factors = [
            self._columns.measure("SUM", self._without_cast(part.unnest()))
            for part in (product.left, product.right)
        ]
        domain = self._columns.domain
        weights = [factor for factor in factors if domain.measure(factor).low >= 0]
        weight = (weights or factors)[0]
        if weight == factors[0]:
            value = factors[1]
        else:
            value = factors[0]
        return OperandTerm(Fraction(1), "weighted", value, weight, boxes)

    def _without_cast(self, node: Node) -> Node:
        """Remove a cast that does not change a sum.

        These are casts of a condition to any number type, and casts of another operand to a type
        with decimals.
        """
        exp = self.exp
        inner = node
        while isinstance(inner, (exp.Cast, exp.TryCast)):
            operand = inner.this.unnest()
            if inner.to.this is not None:
                type_name = inner.to.this.name
            else:
                type_name = ""
            is_truth = not _has_aggregate(operand) and self._columns.is_truth(operand)
            if not is_truth and type_name not in _NUMBER_TYPES:
                return node
            inner = operand
        return inner

    def _branches(self, clause: str, case: Node) -> list[tuple[Boxes, Node]]:
        """Return the boxes of cells and the result of each branch of a CASE.

        If the value of an earlier condition is not the same for all values outside the domain, the
        rows with such values are in no branch.
        """
        results = case_results(case)
        if len(self._columns.attribute_names(clause, _conditions_of(case))) == 1:
            return [*zip(self._branches_of_one_attribute(clause, case), results, strict=True)]
        branches = []
        decided: list[CellBox] = []
        for condition in _branch_conditions(case):
            true = self._columns.true_boxes(clause, condition)
            perhaps = self._columns.true_boxes(clause, condition, with_undecided=True)
            branches.append(subtract(clause, self._columns.domain, true, decided))
            decided += perhaps
        branches.append(subtract(clause, self._columns.domain, EVERYTHING, decided))
        return [*zip(branches, results, strict=True)]

    def _branches_of_one_attribute(self, clause: str, case: Node) -> list[Boxes]:
        """Return the boxes of each branch of a CASE over one attribute, ELSE last."""
        count = len(case_results(case))
        boxes = []
        for branch in range(count):
            is_branch = [branch == other for other in range(count)]
            boxes.append(self._columns.true_boxes(clause, _with_results(case, is_branch)))
        return boxes


def _pair_factor(kind: str, first: Fraction, second: Fraction) -> Fraction:
    """Return the factor of an aggregate if its two measures have factors."""
    if kind.startswith("covariance"):
        return first * second
    if kind == "correlation":
        return Fraction(1 if first * second > 0 else -1)
    if kind == "slope":
        return first / second
    return Fraction(1)


def _without_measures(reader: AggregateReader, node: Node) -> Node:
    """Return the attributes in an aggregate's operand, as one expression."""
    from sqlglot import exp

    return exp.Tuple(
        expressions=[
            column.copy()
            for column in node.find_all(exp.Column)
            if reader.is_attribute_only(column)
        ]
    )


def _has_aggregate(node: Node) -> bool:
    """Return whether an expression contains an aggregate function."""
    from sqlglot import exp

    return node.find(exp.AggFunc) is not None


def _conditions_of(case: Node) -> Node:
    """Return the conditions of a CASE as one expression.

    The results of the CASE are left out.
    """
    from sqlglot import exp

    return exp.Tuple(expressions=[condition.copy() for condition in _branch_conditions(case)])


def _branch_conditions(case: Node) -> list[Node]:
    """Return the condition of each branch of a CASE."""
    from sqlglot import exp

    branches = case.args.get("ifs") or [case]
    operand = case.this if isinstance(case, exp.Case) else None
    if operand is None:
        return [branch.this for branch in branches]
    return [exp.EQ(this=operand.copy(), expression=branch.this.copy()) for branch in branches]


def case_results(case: Node) -> list[Node]:
    """Return the results of a CASE in order, with ELSE last."""
    from sqlglot import exp

    branches = case.args.get("ifs") or [case]
    default = case.args.get("default") or case.args.get("false") or exp.Null()
    return [*(branch.args["true"] for branch in branches), default]


def _with_results(case: Node, truths: Sequence[bool]) -> Node:
    """Return a CASE whose results are replaced by truth values."""
    from sqlglot import exp

    condition = case.copy()
    branches = condition.args.get("ifs") or [condition]
    for branch, is_true in zip(branches, truths[:-1], strict=True):
        branch.set("true", exp.Boolean(this=is_true))
    if isinstance(condition, exp.If):
        default = "false"
    else:
        default = "default"
    condition.set(default, exp.Boolean(this=truths[-1]))
    return condition


def read_number(clause: str, node: Node) -> Fraction:
    """Return the number that an expression states; raise if it is not a number.

    Raises:
        InputError: the node is not a number; the message names the clause.
    """
    number = constant_number(node)
    if number is None:
        raise refused(
            f"{clause} with {node.sql('duckdb')}, which is not a number,",
            "Write one number, and a column for each",
        )
    return number
