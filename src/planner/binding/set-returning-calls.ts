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

type SetReturningCall = Extract<Expression, { kind: 'call' }>;

export function bindSpread(
  call: SetReturningCall,
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
  const setOperands = call.arguments.map(({ value }) => bind(value));
  const setCall = catalogue.set(name.toLowerCase(), setOperands.map(wireTypeOf));
  if (setCall === null) throw errorAt('REL_TYPE_MISMATCH', `${name} can't take these`, location, 'no-such-function');
  const { array, element } = setCall;
  const arrayBound = ofCatalogue(name, array, setOperands, location);
  const elementColumn: PlanColumn = { name: name.toLowerCase(), type: element.type };
  const { node } = level;
  const openSpread = node.kind === 'spread' && node === level.spread ? node : null;
  const spreadInput: PlanNode = openSpread ? openSpread.input : node;
  const spreadWidth = openSpread ? openSpread.width : node.columns.length;
  const arraysNode = project(spreadInput, [...throughColumns(spreadInput), { name: '#array', bound: arrayBound }]);
  const spread: PlanNode = {
    kind: 'spread',
    input: arraysNode,
    width: spreadWidth,
    wires: [...(openSpread?.wires ?? []), element.wire],
    columns: [...(openSpread ?? node).columns, elementColumn],
  };
  level.node = level.spread = spread;
  return { kind: 'column', index: spread.columns.length - 1, ...elementColumn, wire: element.wire };
}
