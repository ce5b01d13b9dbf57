/** Running queries by their caller and query id, for KILL QUERY. */
import { ServiceError } from '../../errors.ts';
import type { Caller } from '../../governance/caller.ts';
import { refusedAs } from './errors.ts';

const runningQueryName = ({ principal, path: callerPath }: Caller, queryId: string): string =>
  JSON.stringify([principal, callerPath, queryId]);

export class RunningQueries {
  readonly #controllerByQuery = new Map<string, AbortController>();

  /** Throws where the caller has one of this id already. `ended` aborts when it is killed. */
  begin(caller: Caller, queryId: string): { readonly ended: AbortSignal; end(): void } {
    const queryName = runningQueryName(caller, queryId);
    if (this.#controllerByQuery.has(queryName))
      throw refusedAs('same-id', new ServiceError('REL_CONFLICT', `Query with id = ${queryId.slice(0, 100)} is already running`));
    const queryController = new AbortController();
    this.#controllerByQuery.set(queryName, queryController);
    return { ended: queryController.signal, end: () => void this.#controllerByQuery.delete(queryName) };
  }

  /** Whether the caller has one of this id. */
  kill(caller: Caller, queryId: string): boolean {
    const queryController = this.#controllerByQuery.get(runningQueryName(caller, queryId));
    queryController?.abort();
    return queryController !== undefined;
  }
}
