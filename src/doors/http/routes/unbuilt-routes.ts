/** Routes of the specification that this version recognises and does not have: a typed refusal, never a wrong success. */
import { ServiceError } from '../../../errors.ts';
import { route, type Route, type RouteMethod } from '../route.ts';

type Row = readonly [methods: readonly RouteMethod[], ...paths: readonly string[]];

/** Source: specification, "Endpoints". */
const dataRows: readonly Row[] = [
  [['POST'], '/ingest/media'],
  [['GET'], '/cluster/nodes', '/cluster/topology'],
  [['POST'], '/cluster/rebalance', '/cluster/drain/:node'],
];

const adminRows: readonly Row[] = [[['GET'], '/admin/system']];

const routesOf = (access: 'token' | 'admin', rows: readonly Row[]): readonly Route[] =>
  rows.flatMap(([methods, ...paths]) =>
    paths.flatMap((path) =>
      methods.map((method) =>
        route({
          method,
          path,
          access,
          action: access === 'admin' ? 'administer' : 'inspect',
          bucket: 'read',
          // The body is not read: its content does not matter.
          reads: 'stream',
          example: { params: { node: 'a node' } },
          run: () => Promise.reject(new ServiceError('REL_NOT_IMPLEMENTED', 'this version does not have this route yet')),
        }),
      ),
    ),
  );

export const laterRoutes = routesOf('token', dataRows);
export const adminLaterRoutes = routesOf('admin', adminRows);
