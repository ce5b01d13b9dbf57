/** Opens the system catalogue for one run: as its caller sees it, and only if the run reads it. */
import type { Random } from '../../clock.ts';
import { ServiceError } from '../../errors.ts';
import type { GovernedSnapshot } from '../../governance/gate-contract.ts';
import type { QueryInvocation } from '../statements/query-series.ts';
import { CatalogueCache } from './catalogue-cache.ts';
import type { ViewColumns } from './catalogue-contents.ts';
import type { ClientSession } from './client-session.ts';
import { Draws } from './random-draws.ts';
import { type SeenCatalogue, seenCatalogue } from './seen-catalogue.ts';

/** The most bytes that are kept of catalogues as callers see them. */
const cacheBytesMax = 128 * 1024 * 1024;

export interface CatalogueRequest {
  readonly invocation: QueryInvocation;
  readonly session: ClientSession | undefined;
  readonly snapshot: GovernedSnapshot;
  readonly columnsOf: ViewColumns;
  readonly lookupEpoch: number;
}

export class CatalogueReader {
  readonly #cache = new CatalogueCache(cacheBytesMax);
  readonly #random: Random | undefined;

  constructor(random: Random | undefined) {
    this.#random = random;
  }

  clear(): void {
    this.#cache.clear();
  }

  open({ invocation, session, snapshot, columnsOf, lookupEpoch }: CatalogueRequest): () => SeenCatalogue {
    let seen: SeenCatalogue | null = null;
    return () =>
      (seen ??= seenCatalogue(
        {
          session,
          snapshot,
          branches: invocation.branches(),
          columnsOf,
          check: () => invocation.checkInspects(),
          draws: () => this.#draws(),
          lookupEpoch,
        },
        this.#cache,
      ));
  }

  #draws(): Draws {
    if (this.#random === undefined) throw new ServiceError('REL_NOT_IMPLEMENTED', 'nothing here draws random numbers');
    return new Draws(this.#random);
  }
}
