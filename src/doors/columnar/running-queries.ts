/** Running queries by their caller and query id, for KILL QUERY. */
import { ServiceError } from '../../errors.ts';
import type { Caller } from '../../governance/caller.ts';
import { refusedAs } from './errors.ts';

const nameOf = ({ principal, path }: Caller, id: string): string => JSON.stringify([principal, path, id]);

export class RunningQueries {
  readonly #byName = new Map<string, AbortController>();

  /** Throws where the caller has one of this id already. `ended` aborts when it is killed. */
  begin(caller: Caller, id: string): { readonly ended: AbortSignal; end(): void } {
    const name = nameOf(caller, id);
    if (this.#byName.has(name))
      throw refusedAs('same-id', new ServiceError('REL_CONFLICT', `Query with id = ${id.slice(0, 100)} is already running`));
    const controller = new AbortController();
    this.#byName.set(name, controller);
    return { ended: controller.signal, end: () => void this.#byName.delete(name) };
  }

  /** Whether the caller has one of this id. */
  kill(caller: Caller, id: string): boolean {
    const controller = this.#byName.get(nameOf(caller, id));
    controller?.abort();
    return controller !== undefined;
  }
}
