/** Rows of the demonstration that are no fixtures, and the stories that lead through it. */
import { formatInstant } from '../log/values/timestamp.ts';

export const demoClaims = [
  { id: 'c-101', vessel: 'aurelia', claimant: 'Nordhavn Towage', amount: 184_000, iban: 'NO9386011117947' },
  { id: 'c-102', vessel: 'aurelia', claimant: 'Port of Setubal', amount: 22_500, iban: 'PT50000201231234567890154' },
  { id: 'c-103', vessel: 'ingrid', claimant: 'Kestrel Repairs', amount: 61_200, iban: 'MT84MALT011000012345MTLCAST001S' },
  { id: 'c-104', vessel: 'brisa', claimant: 'Lemvig Shipyard', amount: 340_000, iban: 'DK5000400440116243' },
];

/** By organisation path: neither sees the other's, and who works above both sees none. */
export const demoVoyages = {
  harbour: [
    {
      id: 'v-1',
      vessel: 'Caledon',
      from_port: 'Lisbon',
      to_port: 'Bergen',
      cargo: 'cork',
      valid_from: '2024-02-03',
      valid_to: '2024-02-14',
    },
    {
      id: 'v-2',
      vessel: 'Ondine',
      from_port: 'Porto',
      to_port: 'Gdansk',
      cargo: 'tiles',
      valid_from: '2024-03-01',
      valid_to: '2024-03-12',
    },
  ],
  tern: [
    {
      id: 'v-1',
      vessel: 'Brisa',
      from_port: 'Valletta',
      to_port: 'Aarhus',
      cargo: 'citrus',
      valid_from: '2024-02-20',
      valid_to: '2024-03-05',
    },
  ],
};

export const demoMemories = [
  {
    content: 'The Aurelia has had no cover since 20 February 2024',
    session_id: 'claims-desk',
    confidence: 0.7,
    memory_class: 'semantic',
  },
  {
    content: 'The collision of the Aurelia was on 10 March 2024 off Skagen',
    session_id: 'claims-desk',
    confidence: 0.9,
    memory_class: 'episodic',
  },
  {
    content: 'Underwriters want notices of cancellation within two weeks',
    session_id: 'rules-of-the-desk',
    confidence: 0.8,
    memory_class: 'procedural',
  },
];

export const demoPolicies = {
  everybody: 'permit(principal, action, resource);',
  'small-claims':
    'forbid(principal in Role::"clerk", action == Action::"read", resource is Claim) when { resource.amount > 100000 };',
};

export interface DemoFacts {
  /** When each of the four filings was believed, nanoseconds. */
  readonly believed: readonly bigint[];
  /** When the routes were, all of them. */
  readonly routed: bigint;
  readonly exhibit: string;
}

/** Each is a view of the console and what it shows. */
export function demoStories({ believed, routed: routesInstant, exhibit }: DemoFacts): readonly object[] {
  const thirdFiling = formatInstant(believed[2]!);
  const demoStory = (id: string, title: string, storyText: string, consoleView: string, viewParams: object): object => ({
    id,
    title,
    text: storyText,
    view: consoleView,
    params: JSON.stringify(viewParams),
  });
  const coverQuery = (instants: string, where = ''): string =>
    `SELECT id, vessel, insurer, status, sum_insured, filed FROM Cover\n${instants}\nWHERE ${where}id = 'aurelia'`;
  return [
    demoStory(
      '1',
      'Who covered the Aurelia?',
      'She was in a collision on 10 March 2024. Move what was believed, and the answer changes: three filings knew three different things.',
      'query',
      {
        sql: coverQuery(
          "AS OF '2024-03-10'",
          `system_from <= TIMESTAMP '${thirdFiling}' AND system_to > TIMESTAMP '${thirdFiling}' AND `,
        ),
        time: '1',
      },
    ),
    demoStory(
      '2',
      'Both times, and a proof',
      'Every version of her cover as a picture, and the newest one proven in this browser. Change one byte and see it fail.',
      'row',
      { type: 'Cover', key: 'aurelia' },
    ),
    demoStory(
      '3',
      'What did June correct?',
      'All covers, as they were believed after the third filing and as they are now: added, gone, changed.',
      'difference',
      {
        sql: 'SELECT * FROM Cover AS OF CURRENT',
        believed_a: thirdFiling,
      },
    ),
    demoStory(
      '4',
      'A route closes',
      'Singapore to Sydney is flown no more. The graph of today, and of before: clear the instant to see it go.',
      'graph',
      {
        node: 'FRA',
        to: 'SYD',
        hops: '2',
        believed: formatInstant(routesInstant + 1_000_000n),
      },
    ),
    demoStory(
      '5',
      'An answer under seal',
      'What the desk answered about the collision, sealed. Derive it again from the log: the same bytes, or it is not the same answer.',
      'exhibit',
      { id: exhibit },
    ),
  ];
}
