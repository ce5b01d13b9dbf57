/** The functions of the domain: each is one file and one line here. */
import type { TableFunction } from '../../calls/table-function.ts';
import { detectIdentities } from './detect-identities.ts';
import { influenceTier } from './influence-tier.ts';

export const domainFunctions: readonly TableFunction[] = [detectIdentities, influenceTier];
