/** What entities are called: a node by what edges call it, a relationship by its key. Lists and paths keep their form. */
export interface Entity {
  readonly labels?: readonly string[];
  readonly type?: string;
  readonly element_id: string;
  readonly start?: string;
  readonly end?: string;
  readonly properties: Readonly<Record<string, unknown>>;
}

export const isEntity = (value: unknown): value is Entity =>
  typeof value === 'object' && value !== null && 'element_id' in value && 'properties' in value;

/** With every entity in it by its name, as `name` has it. */
export function withNames(value: unknown, name: (entity: Entity) => unknown = nameOf): unknown {
  if (isEntity(value)) return name(value);
  if (Array.isArray(value)) return value.map((each) => withNames(each, name));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, withNames(each, name)]));
}

function nameOf({ element_id, labels, properties }: Entity): string {
  const [, key = element_id] = /^[^/]*\/(.*)$/.exec(element_id) ?? [];
  return labels === undefined ? key : String((properties['id'] as string | number | undefined) ?? key);
}

/** A cell that may hold json. */
export function namedCell(cell: unknown, name?: (entity: Entity) => unknown): unknown {
  if (typeof cell !== 'string' || !/^[[{]/.test(cell)) return cell;
  const named = withNames(JSON.parse(cell), name);
  return typeof named === 'object' && named !== null ? JSON.stringify(named) : named;
}
