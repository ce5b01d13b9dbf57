/** BRANCH <name> FROM <source>: forks a branch and answers the row that the route for it would. */
import { smallAnswer } from '../execution/small-answer.ts';
import type { ControlRequest } from './control-request.ts';
import type { Answer } from '../planner-contract.ts';

export async function forkBranch({ statement, invocation, clock, startedMs }: ControlRequest): Promise<Answer> {
  invocation.describe({ action: 'fork' });
  const [branchName, sourceBranch] = statement.names as readonly [string, string];
  const { systemFrom } = await invocation.submit({
    kind: 'fork-branch',
    name: branchName,
    source: sourceBranch,
    shares: 'everything',
  });
  const processingTimeMs = clock.monotonicMs() - startedMs;
  return smallAnswer(
    [
      { name: 'created', type: 'boolean' },
      { name: 'branch', type: 'string' },
      { name: 'source', type: 'string' },
    ],
    [[true, branchName, sourceBranch]],
    { asOfSystem: systemFrom, costUnits: 1, processingTimeMs },
  );
}
