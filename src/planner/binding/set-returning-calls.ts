/** Calls that yield several rows: the node that makes them of the rows that they are over. */
import type { Bound } from '../expressions/bound-expression.ts';
import { ofCatalogue } from '../expressions/bind-call.ts';
import type { CatalogueFunctions } from '../expressions/functions/catalogue.ts';
import { wireTypeOf } from '../expressions/postgres-types.ts';
import type { PlanColumn, PlanNode } from '../logical-plan.ts';
import { errorAt } from '../syntax/error-location.ts';
import type { Expression } from '../syntax/statement.ts';
import { project, throughColumns } from './output-columns.ts';
import type { Level } from './subselects.ts';

type Call = Extract<Expression, { kind: 'call' }>;

export function bindSpread(
  call: Call,
  bind: (operand: Expression) => Bound,
  level: Level | null,
  catalogue: CatalogueFunctions,
): Bound {
  const { name, location } = call;
  if (level?.spreads !== true)
    throw errorAt(
      'REL_INVALID',
      `${name} yields several rows: it stands in the projection of a SELECT without groups, or in FROM`,
      location,
    );
  const operands = call.arguments.map(({ value }) => bind(value));
  const setCall = catalogue.set(name.toLowerCase(), operands.map(wireTypeOf));
  if (setCall === null) throw errorAt('REL_TYPE_MISMATCH', `${name} can't take these`, location, 'no-such-function');
  const { array, element } = setCall;
  const bound = ofCatalogue(name, array, operands, location);
  const column: PlanColumn = { name: name.toLowerCase(), type: element.type };
  const { node } = level;
  const open = node.kind === 'spread' && node === level.spread ? node : null;
  const input: PlanNode = open ? open.input : node;
  const width = open ? open.width : node.columns.length;
  const arrays = project(input, [...throughColumns(input), { name: '#array', bound }]);
  const spread: PlanNode = {
    kind: 'spread',
    input: arrays,
    width,
    wires: [...(open?.wires ?? []), element.wire],
    columns: [...(open ?? node).columns, column],
  };
  level.node = level.spread = spread;
  return { kind: 'column', index: spread.columns.length - 1, ...column, wire: element.wire };
}
