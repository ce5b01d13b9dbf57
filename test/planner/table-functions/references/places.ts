/** Section 4 of the functions as slowly as its rules read: every place beside every other. */
import type { Expected, Question } from './question.ts';
import { instantOf, jaccard, wordsOf } from './money.ts';
import type { Basis, PlainRow, World } from './world.ts';

export function* placeQuestions(world: World, basis: Basis): Generator<Question> {
  const { dice } = world;
  const [lat, lon] = dice.of([
    [51.5052, -0.0981],
    [0.0101, 180],
    [-0.0053, -179.9995],
    [90, 0],
    [51.5, -0.1],
  ] as const);
  const radius = dice.of([0, 120, 700, 5_000, 21_000_000]);
  yield { call: `GEOFENCE(${lat}, ${lon}, ${radius})`, rows: within(world, basis, lat, lon, radius), isOrdered: true };
  const [plate, isFuzzy] = [dice.of(['ab12CDE', 'XY99 ZZZ', 'A812CDE']), dice.chance(50)];
  const [from, to] = [dice.maybe(30, '2024-02-20T12:00:00Z'), dice.maybe(30, '2024-02-21T12:00:00Z')];
  const given = [`'${plate}'`, ...(from === null ? [] : [`FROM => '${from}'`]), ...(to === null ? [] : [`TO => '${to}'`])];
  yield {
    call: `ANPR_TRACE(${given.join(', ')}, FUZZY => ${isFuzzy})`,
    rows: legsOf(world, basis, plate, from, to, isFuzzy),
    isOrdered: true,
  };
  yield dispatched(world, basis);
  yield clustered(world, basis);
}

interface Spot {
  readonly row: PlainRow;
  readonly lat: number;
  readonly lon: number;
}

function spotsOf(rows: readonly PlainRow[]): Spot[] {
  return rows.flatMap((row): Spot[] => {
    const { lat, lon } = row.cells;
    if (typeof lat !== 'number' || typeof lon !== 'number' || Math.abs(lat) > 90 || Math.abs(lon) > 180) return [];
    return [{ row, lat, lon }];
  });
}

/** By the chord between two points of the unit sphere, which haversine is another writing of. */
function metresBetween(lat: number, lon: number, otherLat: number, otherLon: number): number {
  const point = (north: number, east: number): [number, number, number] => {
    const [phi, lambda] = [(north * Math.PI) / 180, (east * Math.PI) / 180];
    return [Math.cos(phi) * Math.cos(lambda), Math.cos(phi) * Math.sin(lambda), Math.sin(phi)];
  };
  const [a, b] = [point(lat, lon), point(otherLat, otherLon)];
  return 2 * 6_371_008.8 * Math.asin(Math.min(1, Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]) / 2));
}

function within(world: World, basis: Basis, lat: number, lon: number, radius: number): Expected[] {
  const spots = spotsOf(['incident', 'sighting', 'unit'].flatMap((role) => world.rows(basis, role)));
  const found = spots.flatMap((spot) => {
    const distance = metresBetween(lat, lon, spot.lat, spot.lon);
    return distance <= radius ? [{ ...spot, distance }] : [];
  });
  found.sort((a, b) => a.distance - b.distance || (a.row.id < b.row.id ? -1 : a.row.id > b.row.id ? 1 : 0));
  return found.map(({ row, distance, ...spot }) => {
    const score = radius === 0 ? 1 : 1 - distance / radius;
    return { nodeId: row.id, type: row.type, lat: spot.lat, lon: spot.lon, distance_m: distance, score };
  });
}

function legsOf(world: World, basis: Basis, plate: string, from: string | null, to: string | null, isFuzzy: boolean): Expected[] {
  const plain = (text: string): string => {
    const letters = text.toUpperCase().replaceAll(/[ -]/g, '');
    return isFuzzy
      ? letters
          .split('')
          .map((each) => '01852'['OIBSZ'.indexOf(each)] ?? each)
          .join('')
      : letters;
  };
  const seen = spotsOf(world.rows(basis, 'sighting')).flatMap((spot) => {
    const { subject, at } = spot.row.cells;
    const when = instantOf(at) ?? spot.row.validFrom;
    const isTimely = (from === null || when >= instantOf(from)!) && (to === null || when < instantOf(to)!);
    return typeof subject === 'string' && plain(subject) === plain(plate) && isTimely ? [{ ...spot, subject, when }] : [];
  });
  seen.sort((a, b) => (a.when === b.when ? (a.row.id < b.row.id ? -1 : 1) : a.when < b.when ? -1 : 1));
  return seen.map(({ row, lat, lon, subject, when }, leg): Expected => {
    const before = seen[leg - 1];
    const common = { nodeId: row.id, type: row.type, leg: BigInt(leg), plate: subject, at: when, lat, lon };
    if (before === undefined) return { ...common, distance_m: null, seconds: null, kmh: null, implausible: null, score: 1 };
    const metres = metresBetween(before.lat, before.lon, lat, lon);
    const seconds = Number(when - before.when) / 1e9;
    const kmh = seconds > 0 ? (metres / seconds) * 3.6 : null;
    // In two places at one instant: two cameras of one place are no two places.
    const isImplausible = kmh === null ? metres > 100 : kmh > 250;
    return { ...common, distance_m: metres, seconds, kmh, implausible: isImplausible, score: isImplausible ? 0 : 1 };
  });
}

function dispatched(world: World, basis: Basis): Question {
  const { dice } = world;
  const [severityWeight, target, speed] = [dice.of([0.6, 0.6, 0.2]), dice.of([3_600, 1e7]), dice.of([40, 90])];
  const units = spotsOf(world.rows(basis, 'unit')).filter(({ row }) =>
    /^(free|available|idle)$/i.test(String(row.cells['status'])),
  );
  const only = dice.maybe(20, `i${String(dice.below(24)).padStart(2, '0')}`);
  const rows = world.rows(basis, 'incident').flatMap((row): Expected[] => {
    const { severity, status, at } = row.cells;
    if (/^(closed|resolved|cancelled|canceled|done)$/i.test(String(status)) || (only !== null && row.id !== only)) return [];
    const when = instantOf(at);
    const wait = when === null ? null : Math.max(0, Number(basis.valid - when) / 1e9);
    const [spot] = spotsOf([row]);
    const near = (spot === undefined ? [] : units)
      .map((unit) => ({ id: unit.row.id, metres: metresBetween(spot!.lat, spot!.lon, unit.lat, unit.lon) }))
      .sort((a, b) => a.metres - b.metres || (a.id < b.id ? -1 : 1))[0];
    const terms = {
      severity: typeof severity === 'number' ? Math.min(1, severity) : 0,
      wait: wait === null ? 0 : Math.min(1, wait / target),
      near: near === undefined ? 0 : 5_000 / (5_000 + near.metres),
    };
    return [
      {
        nodeId: row.id,
        type: row.type,
        unit: near?.id ?? null,
        eta_secs: near === undefined ? null : near.metres / (speed / 3.6),
        wait_secs: wait,
        score: severityWeight * terms.severity + 0.3 * terms.wait + 0.1 * terms.near,
      },
    ];
  });
  const given = `SEVERITY_WEIGHT => ${severityWeight}, TARGET_SECS => ${target}, SPEED_KMH => ${speed}`;
  return { call: `DISPATCH_PRIORITY(${only === null ? '' : `'${only}', `}${given})`, rows };
}

function clustered(world: World, basis: Basis): Question {
  const { dice } = world;
  const [kind, metres, days, least] = [dice.maybe(30, 'theft'), dice.of([150, 500, 1_500]), dice.of([3, 14]), dice.of([2, 3, 4])];
  const all = spotsOf(world.rows(basis, 'incident')).flatMap((spot) => {
    const { at, mo, kind: own } = spot.row.cells;
    const when = instantOf(at);
    const isKind = kind === null || String(own).toLowerCase() === kind;
    return when === null || !isKind ? [] : [{ ...spot, when, words: wordsOf(String(mo ?? '')) }];
  });
  all.sort((a, b) => (a.row.id < b.row.id ? -1 : 1));
  const isNear = (one: (typeof all)[number], other: (typeof all)[number]): boolean => {
    const apart = Math.abs(Number(one.when - other.when)) / 86_400e9;
    const isAlike = one.words.size === 0 || other.words.size === 0 || jaccard(one.words, other.words) >= 0.2;
    return one === other || (apart <= days && isAlike && metresBetween(one.lat, one.lon, other.lat, other.lon) <= metres);
  };
  const near = new Map(all.map((one) => [one, all.filter((other) => isNear(one, other))]));
  const cores = all.filter((one) => near.get(one)!.length >= least);
  const clusterOf = new Map<(typeof all)[number], (typeof all)[number][]>();
  // The cores that reach each other, the one of the smallest id first; then what is near one of them and in no cluster yet.
  for (const core of cores) {
    if (clusterOf.has(core)) continue;
    const reached = new Set([core]);
    for (const each of reached) for (const other of near.get(each)!) if (cores.includes(other)) reached.add(other);
    const rims = all.filter(
      (one) => !cores.includes(one) && !clusterOf.has(one) && near.get(one)!.some((each) => reached.has(each)),
    );
    const members = [...reached, ...rims];
    for (const member of members) clusterOf.set(member, members);
  }
  const rows = [...clusterOf].map(([one, members]): Expected => {
    const cluster = members.map(({ row }) => row.id).toSorted()[0];
    return {
      nodeId: one.row.id,
      type: one.row.type,
      cluster,
      core: cores.includes(one),
      size: BigInt(members.length),
      score: Math.min(1, near.get(one)!.length / (2 * least)),
    };
  });
  const given = `EPS_M => ${metres}, EPS_DAYS => ${days}, MIN_POINTS => ${least}`;
  return { call: `CRIME_PATTERN_CLUSTER(${kind === null ? '' : `'${kind}', `}${given})`, rows };
}
