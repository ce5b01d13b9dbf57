/** The step from a question that another language than SQL has parsed to its answer; the rest of the way is that of `query-body.ts`. */
import type { Answer } from '../../planner/planner-contract.ts';
import type { ParsedQuery } from '../../planner/syntax/statement.ts';
import { type StatedInstants, timeOf } from '../shared/instants.ts';
import type { HttpContext, GateRequest } from './context.ts';
import { statedPurpose } from './request-headers.ts';
import { invoke, signalOf } from './invoke.ts';

/** Without an instant it reads current rows. Its access record has been appended when this resolves. */
export function askParsed(
  httpContext: HttpContext,
  questionRequest: GateRequest,
  parsedQuery: ParsedQuery,
  statedInstants: StatedInstants & { readonly purpose?: string | undefined },
): Promise<Answer> {
  const { purpose } = statedInstants;
  const statedTime = timeOf(statedInstants);
  const socketSignal = signalOf(questionRequest.raw.socket);
  return invoke(httpContext, questionRequest, 'query', purpose, (queryInvocation) => {
    const plannerQuestion = {
      parsed: parsedQuery,
      time: statedTime,
      signal: socketSignal,
      purpose: statedPurpose(questionRequest, purpose),
      queriesOnly: true,
    };
    return httpContext.planner.query(queryInvocation, plannerQuestion);
  });
}
