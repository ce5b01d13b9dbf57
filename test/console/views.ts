/** Every view of the pages, with something in it: what the walks, the pictures and axe look at. */
import type { Page } from 'playwright-core';
import { hrefOf, storiesOf } from './stage.ts';

export interface ViewOfPage {
  readonly name: string;
  readonly href: string;
  /** There once the view shows what it is about. */
  readonly ready: string;
}

const statement = (sql: string, more: Readonly<Record<string, string>> = {}): string => hrefOf('query', { sql, ...more });

/** The stories first, which stand in the store. */
export async function viewsOf(page: Page): Promise<readonly ViewOfPage[]> {
  const stories = await storiesOf(page);
  const believed = new URLSearchParams(stories[3]!.split('?')[1]).get('believed')!;
  const ready = ['.grid .row', 'text=proven in this browser', 'text=changed', 'canvas.graph', 'text=Derive again'];
  return [
    { name: 'home', href: hrefOf('home'), ready: 'section[aria-label=stories] a' },
    ...stories.map((href, i) => ({ name: `story-${i + 1}`, href, ready: ready[i]! })),
    { name: 'masked', href: statement('SELECT * FROM Claim AS OF CURRENT'), ready: '.masked' },
    {
      name: 'plan',
      href: statement('EXPLAIN ANALYZE SELECT flag, COUNT(*) AS n FROM Cover AS OF CURRENT GROUP BY flag ORDER BY n DESC'),
      ready: '.plan tr',
    },
    {
      name: 'chart',
      href: statement('SELECT flag, COUNT(*) AS covers, SUM(sum_insured) AS insured FROM Cover AS OF CURRENT GROUP BY flag', {
        chart: '1',
      }),
      ready: '.uplot canvas',
    },
    { name: 'error', href: statement('SELECT vessl FROM Cover'), ready: '.problem' },
    { name: 'search', href: hrefOf('search', { q: 'baltik', type: 'Cover' }), ready: 'em.hit' },
    { name: 'graph', href: hrefOf('graph', { node: 'FRA' }), ready: 'canvas.graph' },
    {
      name: 'graph-since',
      href: hrefOf('graph', { node: 'FRA', to: 'SYD', hops: '2', since: believed }),
      ready: '[aria-label=difference] >> text="gone"',
    },
    { name: 'memory', href: hrefOf('memory', { q: 'Aurelia' }), ready: 'article' },
    { name: 'watch', href: hrefOf('watch'), ready: '[role=log]' },
    { name: 'branches', href: hrefOf('branches'), ready: 'svg .node' },
    { name: 'audit', href: hrefOf('audit'), ready: 'table.plain td' },
    { name: 'exhibits', href: hrefOf('exhibit'), ready: 'text=New exhibit' },
    { name: 'receipts', href: hrefOf('receipt'), ready: '#receipt' },
    { name: 'sharing', href: hrefOf('sharing', { organization: 'harbour' }), ready: '.problem' },
    { name: 'tenants', href: hrefOf('tenants'), ready: 'text=This store is one node' },
    { name: 'dashboard', href: hrefOf('dashboard'), ready: '.figure' },
    { name: 'policies', href: hrefOf('governance'), ready: 'article pre' },
    { name: 'tokens', href: hrefOf('tokens'), ready: 'text=Act as' },
    { name: 'operations', href: hrefOf('operations'), ready: 'text=Back up now' },
  ];
}
