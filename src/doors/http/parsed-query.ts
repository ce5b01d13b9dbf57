/** The step from a question that another language than SQL has parsed to its answer; the rest of the way is that of `query-body.ts`. */
import type { Answer } from '../../planner/planner-contract.ts';
import type { ParsedQuery } from '../../planner/syntax/statement.ts';
import { type StatedInstants, timeOf } from '../schemas/instants.ts';
import type { HttpContext, GateRequest } from './context.ts';
import { statedPurpose } from './request-headers.ts';
import { invoke, signalOf } from './invoke.ts';

/** Without an instant it reads current rows. Its access record has been appended when this resolves. */
export function askParsed(
  context: HttpContext,
  request: GateRequest,
  parsed: ParsedQuery,
  stated: StatedInstants & { readonly purpose?: string | undefined },
): Promise<Answer> {
  const { purpose } = stated;
  const time = timeOf(stated);
  const signal = signalOf(request.raw.socket);
  return invoke(context, request, 'query', purpose, (invocation) => {
    const asked = { parsed, time, signal, purpose: statedPurpose(request, purpose), queriesOnly: true };
    return context.planner.query(invocation, asked);
  });
}
