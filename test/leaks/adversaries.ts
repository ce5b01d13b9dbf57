/** Everybody who must not see what differs between the worlds, and how they come to the door. */
import type { Secret } from './canaries.ts';
import { adminSecret, bootstrapSecret, type SentHeaders } from './lab.ts';
import { type Holder, type Stage, victimPath, type Written } from './stage.ts';

export interface Adversary {
  readonly name: string;
  readonly headers: (stage: Stage) => SentHeaders;
  /** Whose token it is; absent for whoever has none. */
  readonly holder?: Holder;
  /** Path whose rows and those below it are theirs; undefined for whoever gets none at all. */
  readonly path?: string | null;
  /** Status and code of every reply of a data route, where the door lets nothing through. */
  readonly shut?: string;
  /** Status and code of every answer to a question, where the gate lets none through. */
  readonly stopped?: string;
  /** Rows of others that an agreement shows them, the newest version alone. */
  readonly shares?: (row: Written) => boolean;
  /** The operator's own key of the doors beside HTTP, for whatever organisation it names: nothing is kept from it there. */
  readonly opensDoors?: true;
  /** Only where there are tenants, policies and agreements. */
  readonly governed?: true;
  /** What they may see although others may not. */
  readonly knows?: readonly Secret[];
}

const holding = (holder: Holder, path: string | null = null): Pick<Adversary, 'headers' | 'holder'> => ({
  holder,
  headers: (stage) => stage.headers(holder, path),
});

const naming = (holder: Holder, paths: string | readonly string[]): Pick<Adversary, 'headers' | 'holder'> => ({
  holder,
  headers: (stage) => ({ ...stage.headers(holder), 'x-organization-id': paths }),
});

const isShared = ({ path, cells }: Written): boolean => path === victimPath && [cells['note'], cells['boss']].includes('shared');

const bearing = (token: (stage: Stage) => string) => (stage: Stage) => ({ authorization: `Bearer ${token(stage)}` });

export const adversaries: readonly Adversary[] = [
  { name: 'another tenant', ...holding('globex'), path: 'globex' },
  { name: 'a path of another tenant', ...holding('globex', 'globex/lab'), path: 'globex/lab' },
  { name: 'another tenant that names the victim', ...holding('globex', 'acme/eu'), shut: '403 REL_XORG' },
  { name: 'another tenant that names the victim’s tenant', ...holding('globex', 'acme'), shut: '403 REL_XORG' },
  { name: 'a sibling path', ...holding('acme', 'acme/us'), path: 'acme/us' },
  { name: 'a sibling that starts alike', ...holding('acme', 'acme/eu-west'), path: 'acme/eu-west' },
  { name: 'a child', ...holding('acme', 'acme/eu/berlin'), path: 'acme/eu/berlin' },
  { name: 'a tenant that starts alike', ...holding('acme-evil'), path: 'acme-evil' },
  { name: 'no header', ...holding('root'), path: null },
  { name: 'an unbound token at a sibling', ...holding('root', 'acme/us'), path: 'acme/us' },
  { name: 'the victim in other letters', ...holding('root', 'Acme/eu'), path: 'Acme/eu' },
  { name: 'the victim percent-encoded', ...holding('root', 'acme%2Feu'), path: 'acme%2Feu' },
  { name: 'the victim with a slash behind', ...holding('root', 'acme/eu/'), shut: '400 REL_INVALID' },
  { name: 'two headers', ...naming('root', ['acme/us', 'acme/eu']), shut: '400 REL_INVALID' },
  { name: 'two paths in one header', ...naming('root', 'acme/us, acme/eu'), shut: '400 REL_INVALID' },
  { name: 'a reader of masked columns', ...holding('wayne'), path: 'wayne' },
  { name: 'whoever may see the masked cells', ...holding('officer'), path: 'wayne', knows: ['masked cells'] },
  { name: 'a limited token without its purpose', ...holding('limited') },
  {
    name: 'a purpose that is not the token’s',
    holder: 'limited',
    headers: (stage) => ({ ...stage.headers('limited'), 'x-service-purpose': 'test' }),
  },
  {
    name: 'an unregistered purpose',
    holder: 'root',
    headers: (stage) => ({ ...stage.headers('root'), 'x-service-purpose': 'curiosity' }),
  },
  { name: 'a revoked token', ...holding('leaver'), shut: '401 REL_UNAUTHENTICATED' },
  { name: 'a made-up token', headers: bearing((stage) => stage.tokens.get('made up')!), shut: '401 REL_UNAUTHENTICATED' },
  { name: 'nobody', headers: () => ({ 'x-organization-id': 'acme/eu' }), shut: '401 REL_UNAUTHENTICATED' },
  {
    name: 'the bootstrap secret',
    headers: (stage) => ({ ...bearing(() => bootstrapSecret)(stage), 'x-organization-id': 'acme/eu' }),
    opensDoors: true,
    shut: '401 REL_UNAUTHENTICATED',
  },
  { name: 'a partner', ...holding('umbrella'), path: 'umbrella', governed: true, shares: isShared },
  { name: 'a partner on a visit', ...holding('umbrella', 'acme/eu'), governed: true },
  { name: 'a former partner', ...holding('cyber'), path: 'cyber', governed: true },
  { name: 'a former partner on a visit', ...holding('cyber', 'acme/us'), governed: true, shut: '403 REL_XORG' },
  { name: 'a suspended tenant', ...holding('stark'), governed: true, stopped: '402 REL_TENANT_SUSPENDED' },
  { name: 'a tenant that was made anew', ...holding('hooli'), path: 'hooli', governed: true },
  {
    name: 'the admin secret',
    headers: (stage) => ({ ...bearing(() => adminSecret)(stage), 'x-organization-id': 'acme/eu' }),
    shut: '401 REL_UNAUTHENTICATED',
  },
];

/** The victim’s own view: shapes must be answered by somebody, and what is hidden must be somebody’s to see. */
export const owner: Adversary = {
  name: 'the owner',
  ...holding('acme', 'acme/eu'),
  path: 'acme/eu',
  knows: ['rows of the victim'],
};
