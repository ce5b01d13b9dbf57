/** WATCH as a statement: registers, and says how to follow. */
import { smallAnswer } from '../execution/small-answer.ts';
import type { ControlRequest } from './control-request.ts';
import { errorAt } from '../syntax/error-location.ts';
import type { Answer } from '../planner-contract.ts';

/** Source: specification, "Operator table": WATCH PURPOSE '<id>' <select>. */
export async function watch({
  continuous,
  statement,
  invocation,
  request,
  text,
  clock,
  startedMs,
}: ControlRequest): Promise<Answer> {
  if (continuous === null) throw errorAt('REL_NOT_IMPLEMENTED', 'WATCH is not served here', statement.location);
  const watchSubscription = await continuous.watch.register(invocation, text(), request.purpose ?? null);
  continuous.watch.offer(watchSubscription);
  const { id, basis, statement: watched } = watchSubscription;
  invocation.describe({ rowCount: 0, costUnits: 1 });
  return smallAnswer(
    [
      { name: 'subscription', type: 'string' },
      { name: 'type', type: 'string' },
      { name: 'as_of_system', type: 'timestamp' },
      { name: 'stream', type: 'string' },
    ],
    [[id, watched.type, basis, `/watch/stream?subscription=${id}`]],
    { asOfSystem: basis, costUnits: 1, processingTimeMs: clock.monotonicMs() - startedMs },
  );
}
