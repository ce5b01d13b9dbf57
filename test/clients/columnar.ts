/** ClickHouse's own client of 2018 and Python's driver, both by the native protocol. */
import type { Client, Place } from './list.ts';

/** Debian's, whatever other versions of Python come first on the PATH. */
const python = '/usr/bin/python3';

/** Rows of a type that nothing else writes to. */
const written = ({ url, token }: Place): string => `node - <<'END'
const headers = { authorization: 'Bearer ${token}', 'content-type': 'application/json' };
const post = async (path, body) => {
  const reply = await fetch('${url}' + path, { method: 'POST', headers, body: JSON.stringify(body) });
  if (!reply.ok && reply.status !== 409) throw new Error(await reply.text());
};
const properties = { id: 'string', whole: 'integer', share: 'number', sure: 'boolean', at: 'timestamp', place: { type: 'vector', dims: 2 } };
(async () => {
  await post('/types', { name: 'Berth', primary_key: 'id', properties });
  const whole = '@9223372036854775807@';
  const rows = JSON.stringify([{ id: 'b1', whole, share: 0.1, sure: true, at: '2024-05-01T00:00:00.123456789Z', place: [1, 2.5] }, { id: 'b2' }]);
  const body = rows.replace(/"@|@"/g, '');
  const reply = await fetch('${url}/ingest?object_type=Berth', { method: 'POST', headers, body });
  if (!reply.ok) throw new Error(await reply.text());
})();
END
`;

/** As long as nobody cancels it: every berth beside every berth, many times. */
const endless = `SELECT COUNT(*) AS n FROM Berth a${Array.from({ length: 30 }, (_, i) => `, Berth b${i}`).join('')}`;

const own: Client = {
  name: 'clickhouse-client',
  door: 'columnar-native',
  package: 'clickhouse-client',
  probe: 'command -v clickhouse-client',
  steps: (place) => {
    const program = `C="clickhouse-client --host 127.0.0.1 --port ${place.port} --user me --password ${place.secret}"\n`;
    const every = '"SELECT id, whole, share, sure, at, place FROM Berth ORDER BY id"';
    return [
      {
        name: 'every type, compressed and not',
        script: `${written(place)}${program}$C -q ${every}\n$C --compression=0 -q ${every}`,
        prints: /^(b1\t9223372036854775807\t0\.1\t1\t1714521600123456789\t\[1,2\.5\]\nb2\t\\N\t\\N\t\\N\t\\N\t\[\]\n){2}$/,
      },
      {
        name: 'several questions in one session, with settings, and an error in the middle',
        script: `${program}printf "SELECT 1 AS one;\\nSELECT nothing FROM Berth;\\nSELECT COUNT(*) AS n FROM Berth;\\n" | $C -n --ignore-error --max_threads=2 --max_memory_usage=1000000000 2>&1 || true`,
        prints: /^(1\n)[^]*nothing[^]*2\n|1\n2\n[^]*nothing/,
      },
      {
        name: 'what was true then, and what there is',
        script: `${program}$C -q "SELECT COUNT(*) AS n FROM Berth SETTINGS annals_as_of = '2000-01-01' FORMAT TSV"
$C -q "SHOW TABLES LIKE 'Bert%'"
$C -q "DESCRIBE TABLE Berth" | cut -f 1,2`,
        prints: /^0\nBerth\n[^]*\nwhole\tNullable\(Int64\)\n[^]*sure\tNullable\(UInt8\)\nat\tNullable\(Int64\)\n/,
      },
      {
        name: 'a batch of rows, refused',
        script: `${program}printf 'x\\ny\\n' | $C -q "INSERT INTO Berth (id) FORMAT TSV" 2>&1 && exit 1
$C -q "INSERT INTO Berth (id) VALUES ('x')" 2>&1 && exit 1
$C -q "SELECT COUNT(*) AS n FROM Berth"`,
        prints: /Code: 164[^]*Code: 164[^]*\n2\n$/,
      },
      {
        name: 'a wrong password',
        script: `${program}clickhouse-client --host 127.0.0.1 --port ${place.port} --password wrong -q "SELECT 1 AS one" 2>&1 || true`,
        prints: /Code: 516/,
      },
      {
        name: 'a cancelled question, and the next',
        script: `${program}timeout -s INT 2 $C -q "${endless}" 2>&1 && exit 1
$C -q "SELECT COUNT(*) AS n FROM Berth"`,
        prints: /^(?!.*Code)[^]*2\n$/,
        seconds: 20,
      },
    ];
  },
};

const driver: Client = {
  name: 'clickhouse-driver',
  door: 'columnar-native',
  package: 'python3-clickhouse-driver',
  probe: `${python} -c 'import clickhouse_driver'`,
  steps: (place) => {
    const program = (text: string): string => `${python} - <<'END'
from clickhouse_driver import Client, connect, errors
def client(**more):
    return Client('127.0.0.1', port=${place.port}, user='me', password='${place.secret}', **more)
${text}
END`;
    return [
      {
        name: 'every type, parameters, and what was true then',
        script: `${written(place)}${program(`c = client()
print(c.execute('SELECT id, whole, share, sure, place FROM Berth ORDER BY id'))
print(c.execute('SELECT at FROM Berth WHERE id = %(id)s', {'id': 'b1'})[0][0].isoformat())
print(c.execute('SELECT COUNT(*) AS n FROM Berth', settings={'annals_as_of': '2000-01-01'}))
print(c.execute('SELECT id FROM Berth WHERE id = %(id)s', {'id': "b'1"}, with_column_types=True))`)}`,
        prints:
          /\[\('b1', 9223372036854775807, 0\.1, True, \[1\.0, 2\.5\]\), \('b2', None, None, None, \[\]\)\]\n2024-05-01T00:00:00\.12345\d\+00:00\n\[\(0,\)\]\n\(\[\], \[\('id', 'Nullable\(String\)'\)\]\)\n/,
      },
      {
        name: 'a connection that is used again, by its DB-API, and an error in the middle',
        script: program(`d = connect(host='127.0.0.1', port=${place.port}, user='me', password='${place.secret}')
k = d.cursor()
for asked in ['SELECT COUNT(*) AS n FROM Berth', 'SELECT nothing FROM Berth', 'SELECT id FROM Berth ORDER BY id']:
    try:
        k.execute(asked)
        print(k.fetchall())
    except errors.Error as e:
        print('refused')
    except Exception as e:
        print(type(e).__name__)
d.close()`),
        prints: /^\[\(2,\)\]\n\w+\n\[\('b1',\), \('b2',\)\]\n$/,
      },
      {
        name: 'a batch of rows, refused',
        script: program(`c = client()
for rows in [[{'id': 'x'}], [['y'], ['z']]]:
    try:
        c.execute('INSERT INTO Berth (id) VALUES', rows)
    except errors.ServerException as e:
        print(e.code)
print(c.execute('SELECT COUNT(*) AS n FROM Berth'))`),
        prints: /^164\n164\n\[\(2,\)\]\n$/,
      },
      {
        name: 'rows one after the other, and a cancelled question',
        script: program(`c = client(send_receive_timeout=10)
print([row[0] for row in c.execute_iter('SELECT id FROM Berth ORDER BY id')], c.last_query.profile_info.rows)
c.connection.force_connect()
c.connection.send_query('${endless}')
c.connection.send_external_tables(None)
c.connection.send_cancel()
print(c.receive_result())
print(c.execute('SELECT COUNT(*) AS n FROM Berth'))`),
        prints: /^\['b1', 'b2'\] 2\n\[\]\n\[\(2,\)\]\n$/,
        seconds: 20,
      },
    ];
  },
};

export const columnarClients: readonly Client[] = [own, driver];
