/** REGISTER LOOKUP and DROP LOOKUP as statements. */
import { smallAnswer } from '../execution/small-answer.ts';
import type { ControlRequest } from './control-request.ts';
import { errorAt } from '../syntax/error-location.ts';
import type { Answer } from '../planner-contract.ts';

/** Source: specification, "Operator table": REGISTER LOOKUP name FROM 'path' KEY (column) FIELDS (…) [REFRESH EVERY n MINUTES]. */
export async function registerLookup(request: ControlRequest): Promise<Answer> {
  const { continuous, statement, literals, invocation, clock, startedMs } = request;
  if (continuous === null) throw errorAt('REL_NOT_IMPLEMENTED', 'REGISTER LOOKUP is not served here', statement.location);
  const [lookupName, lookupKey, ...lookupFields] = statement.names;
  const minutesOption = statement.options.find((option) => option.name === 'MINUTES');
  invocation.describe({ action: 'schema' });
  const { instant } = invocation.snapshot();
  const lookupTable = await continuous.lookups.register(
    {
      name: lookupName!,
      path: String(literals[statement.arguments[0]!.slot]),
      key: lookupKey!,
      fields: lookupFields,
      refreshMinutes: minutesOption === undefined ? null : Number(literals[minutesOption.value.slot]),
    },
    invocation.caller.path,
  );
  return smallAnswer(
    [
      { name: 'lookup', type: 'string' },
      { name: 'rows', type: 'integer' },
      { name: 'loaded_at', type: 'timestamp' },
    ],
    [[lookupTable.name, BigInt(lookupTable.rows), lookupTable.loadedAt]],
    { asOfSystem: instant, costUnits: 1, processingTimeMs: clock.monotonicMs() - startedMs },
  );
}

/** Drops a lookup table of the caller's own path: one of a path above it stays, and is found under the name again. */
export async function dropLookup({ continuous, statement, invocation, clock, startedMs }: ControlRequest): Promise<Answer> {
  if (continuous === null) throw errorAt('REL_NOT_IMPLEMENTED', 'DROP LOOKUP is not served here', statement.location);
  const lookupName = statement.names[0]!;
  invocation.describe({ action: 'schema' });
  const { instant } = invocation.snapshot();
  continuous.lookups.drop(lookupName, invocation.caller.path);
  return smallAnswer(
    [
      { name: 'lookup', type: 'string' },
      { name: 'dropped', type: 'boolean' },
    ],
    [[lookupName, true]],
    { asOfSystem: instant, costUnits: 1, processingTimeMs: clock.monotonicMs() - startedMs },
  );
}
