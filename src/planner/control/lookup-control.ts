/** REGISTER LOOKUP and DROP LOOKUP as statements. */
import { smallAnswer } from '../execution/small-answer.ts';
import type { ControlRequest } from './control-request.ts';
import { errorAt } from '../syntax/error-location.ts';
import type { Answer } from '../planner-contract.ts';

/** Source: specification, "Operator table": REGISTER LOOKUP name FROM 'path' KEY (column) FIELDS (…) [REFRESH EVERY n MINUTES]. */
export async function registerLookup(request: ControlRequest): Promise<Answer> {
  const { continuous, statement, literals, invocation, clock, startedMs } = request;
  if (continuous === null) throw errorAt('REL_NOT_IMPLEMENTED', 'REGISTER LOOKUP is not served here', statement.location);
  const [name, key, ...fields] = statement.names;
  const minutes = statement.options.find((option) => option.name === 'MINUTES');
  invocation.describe({ action: 'schema' });
  const { instant } = invocation.snapshot();
  const table = await continuous.lookups.register(
    {
      name: name!,
      path: String(literals[statement.arguments[0]!.slot]),
      key: key!,
      fields,
      refreshMinutes: minutes === undefined ? null : Number(literals[minutes.value.slot]),
    },
    invocation.caller.path,
  );
  return smallAnswer(
    [
      { name: 'lookup', type: 'string' },
      { name: 'rows', type: 'integer' },
      { name: 'loaded_at', type: 'timestamp' },
    ],
    [[table.name, BigInt(table.rows), table.loadedAt]],
    { asOfSystem: instant, costUnits: 1, processingTimeMs: clock.monotonicMs() - startedMs },
  );
}

/** Drops a lookup table of the caller's own path: one of a path above it stays, and is found under the name again. */
export async function dropLookup({ continuous, statement, invocation, clock, startedMs }: ControlRequest): Promise<Answer> {
  if (continuous === null) throw errorAt('REL_NOT_IMPLEMENTED', 'DROP LOOKUP is not served here', statement.location);
  const name = statement.names[0]!;
  invocation.describe({ action: 'schema' });
  const { instant } = invocation.snapshot();
  continuous.lookups.drop(name, invocation.caller.path);
  return smallAnswer(
    [
      { name: 'lookup', type: 'string' },
      { name: 'dropped', type: 'boolean' },
    ],
    [[name, true]],
    { asOfSystem: instant, costUnits: 1, processingTimeMs: clock.monotonicMs() - startedMs },
  );
}
