/**
 * The relations of the catalogue and their columns, as version 15 of Postgres has them: a name, then its columns, each run of them
 * with their type behind a colon. Relations that stand here and have no rows in `relations.ts` are empty.
 */
export interface RelationColumns {
  readonly schema: string;
  readonly name: string;
  readonly columns: readonly { readonly name: string; readonly type: string }[];
}

const lists = `
information_schema.applicable_roles = grantee role_name:name is_grantable:varchar
information_schema.check_constraints = constraint_catalog constraint_schema constraint_name:name check_clause:varchar
information_schema.columns = table_catalog table_schema table_name column_name:name ordinal_position:int4 column_default
  is_nullable data_type:varchar character_maximum_length character_octet_length numeric_precision numeric_precision_radix
  numeric_scale datetime_precision:int4 interval_type:varchar interval_precision:int4 character_set_catalog
  character_set_schema character_set_name collation_catalog collation_schema collation_name domain_catalog domain_schema
  domain_name udt_catalog udt_schema udt_name scope_catalog scope_schema scope_name:name maximum_cardinality:int4
  dtd_identifier:name is_self_referencing is_identity identity_generation identity_start identity_increment identity_maximum
  identity_minimum identity_cycle is_generated generation_expression is_updatable:varchar
information_schema.constraint_column_usage = table_catalog table_schema table_name column_name constraint_catalog
  constraint_schema constraint_name:name
information_schema.domains = domain_catalog domain_schema domain_name:name data_type:varchar character_maximum_length
  character_octet_length:int4 character_set_catalog character_set_schema character_set_name collation_catalog collation_schema
  collation_name:name numeric_precision numeric_precision_radix numeric_scale datetime_precision:int4 interval_type:varchar
  interval_precision:int4 domain_default:varchar udt_catalog udt_schema udt_name scope_catalog scope_schema scope_name:name
  maximum_cardinality:int4 dtd_identifier:name
information_schema.enabled_roles = role_name:name
information_schema.information_schema_catalog_name = catalog_name:name
information_schema.key_column_usage = constraint_catalog constraint_schema constraint_name table_catalog table_schema
  table_name column_name:name ordinal_position position_in_unique_constraint:int4
information_schema.parameters = specific_catalog specific_schema specific_name:name ordinal_position:int4 parameter_mode
  is_result as_locator:varchar parameter_name:name data_type:varchar character_maximum_length character_octet_length:int4
  character_set_catalog character_set_schema character_set_name collation_catalog collation_schema collation_name:name
  numeric_precision numeric_precision_radix numeric_scale datetime_precision:int4 interval_type:varchar
  interval_precision:int4 udt_catalog udt_schema udt_name scope_catalog scope_schema scope_name:name maximum_cardinality:int4
  dtd_identifier:name parameter_default:varchar
information_schema.referential_constraints = constraint_catalog constraint_schema constraint_name unique_constraint_catalog
  unique_constraint_schema unique_constraint_name:name match_option update_rule delete_rule:varchar
information_schema.role_table_grants = grantor grantee table_catalog table_schema table_name:name privilege_type is_grantable
  with_hierarchy:varchar
information_schema.routines = specific_catalog specific_schema specific_name routine_catalog routine_schema routine_name:name
  routine_type:varchar module_catalog module_schema module_name udt_catalog udt_schema udt_name:name data_type:varchar
  character_maximum_length character_octet_length:int4 character_set_catalog character_set_schema character_set_name
  collation_catalog collation_schema collation_name:name numeric_precision numeric_precision_radix numeric_scale
  datetime_precision:int4 interval_type:varchar interval_precision:int4 type_udt_catalog type_udt_schema type_udt_name
  scope_catalog scope_schema scope_name:name maximum_cardinality:int4 dtd_identifier:name routine_body routine_definition
  external_name external_language parameter_style is_deterministic sql_data_access is_null_call sql_path
  schema_level_routine:varchar max_dynamic_result_sets:int4 is_user_defined_cast is_implicitly_invocable security_type:varchar
  to_sql_specific_catalog to_sql_specific_schema to_sql_specific_name:name as_locator:varchar created last_altered:timestamptz
  new_savepoint_level is_udt_dependent result_cast_from_data_type result_cast_as_locator:varchar result_cast_char_max_length
  result_cast_char_octet_length:int4 result_cast_char_set_catalog result_cast_char_set_schema result_cast_char_set_name
  result_cast_collation_catalog result_cast_collation_schema result_cast_collation_name:name result_cast_numeric_precision
  result_cast_numeric_precision_radix result_cast_numeric_scale result_cast_datetime_precision:int4
  result_cast_interval_type:varchar result_cast_interval_precision:int4 result_cast_type_udt_catalog
  result_cast_type_udt_schema result_cast_type_udt_name result_cast_scope_catalog result_cast_scope_schema
  result_cast_scope_name:name result_cast_maximum_cardinality:int4 result_cast_dtd_identifier:name
information_schema.schemata = catalog_name schema_name schema_owner default_character_set_catalog default_character_set_schema
  default_character_set_name:name sql_path:varchar
information_schema.sequences = sequence_catalog sequence_schema sequence_name:name data_type:varchar numeric_precision
  numeric_precision_radix numeric_scale:int4 start_value minimum_value maximum_value increment cycle_option:varchar
information_schema.table_constraints = constraint_catalog constraint_schema constraint_name table_catalog table_schema
  table_name:name constraint_type is_deferrable initially_deferred enforced nulls_distinct:varchar
information_schema.table_privileges = grantor grantee table_catalog table_schema table_name:name privilege_type is_grantable
  with_hierarchy:varchar
information_schema.tables = table_catalog table_schema table_name:name table_type:varchar self_referencing_column_name:name
  reference_generation:varchar user_defined_type_catalog user_defined_type_schema user_defined_type_name:name
  is_insertable_into is_typed commit_action:varchar
information_schema.triggers = trigger_catalog trigger_schema trigger_name:name event_manipulation:varchar event_object_catalog
  event_object_schema event_object_table:name action_order:int4 action_condition action_statement action_orientation
  action_timing:varchar action_reference_old_table action_reference_new_table action_reference_old_row
  action_reference_new_row:name created:timestamptz
information_schema.views = table_catalog table_schema table_name:name view_definition check_option is_updatable
  is_insertable_into is_trigger_updatable is_trigger_deletable is_trigger_insertable_into:varchar
pg_catalog.pg_am = oid:oid amname:name amhandler:regproc amtype:char
pg_catalog.pg_attrdef = oid adrelid:oid adnum:int2 adbin:pg_node_tree
pg_catalog.pg_attribute = attrelid:oid attname:name atttypid:oid attstattarget:int4 attlen attnum:int2 attndims attcacheoff
  atttypmod:int4 attbyval:bool attalign attstorage attcompression:char attnotnull atthasdef atthasmissing:bool attidentity
  attgenerated:char attisdropped attislocal:bool attinhcount:int4 attcollation:oid attacl:_aclitem attoptions
  attfdwoptions:_text attmissingval:anyarray
pg_catalog.pg_auth_members = roleid member grantor:oid admin_option:bool
pg_catalog.pg_available_extensions = name:name default_version installed_version comment:text
pg_catalog.pg_class = oid:oid relname:name relnamespace reltype reloftype relowner relam relfilenode reltablespace:oid
  relpages:int4 reltuples:float4 relallvisible:int4 reltoastrelid:oid relhasindex relisshared:bool relpersistence relkind:char
  relnatts relchecks:int2 relhasrules relhastriggers relhassubclass relrowsecurity relforcerowsecurity relispopulated:bool
  relreplident:char relispartition:bool relrewrite:oid relfrozenxid relminmxid:xid relacl:_aclitem reloptions:_text
  relpartbound:pg_node_tree
pg_catalog.pg_collation = oid:oid collname:name collnamespace collowner:oid collprovider:char collisdeterministic:bool
  collencoding:int4 collcollate collctype colliculocale collversion:text
pg_catalog.pg_constraint = oid:oid conname:name connamespace:oid contype:char condeferrable condeferred convalidated:bool
  conrelid contypid conindid conparentid confrelid:oid confupdtype confdeltype confmatchtype:char conislocal:bool
  coninhcount:int4 connoinherit:bool conkey confkey:_int2 conpfeqop conppeqop conffeqop:_oid confdelsetcols:_int2
  conexclop:_oid conbin:pg_node_tree
pg_catalog.pg_conversion = oid:oid conname:name connamespace conowner:oid conforencoding contoencoding:int4 conproc:regproc
  condefault:bool
pg_catalog.pg_database = oid:oid datname:name datdba:oid encoding:int4 datlocprovider:char datistemplate datallowconn:bool
  datconnlimit:int4 datfrozenxid datminmxid:xid dattablespace:oid datcollate datctype daticulocale datcollversion:text
  datacl:_aclitem
pg_catalog.pg_db_role_setting = setdatabase setrole:oid setconfig:_text
pg_catalog.pg_default_acl = oid defaclrole defaclnamespace:oid defaclobjtype:char defaclacl:_aclitem
pg_catalog.pg_depend = classid objid:oid objsubid:int4 refclassid refobjid:oid refobjsubid:int4 deptype:char
pg_catalog.pg_description = objoid classoid:oid objsubid:int4 description:text
pg_catalog.pg_enum = oid enumtypid:oid enumsortorder:float4 enumlabel:name
pg_catalog.pg_event_trigger = oid:oid evtname evtevent:name evtowner evtfoid:oid evtenabled:char evttags:_text
pg_catalog.pg_extension = oid:oid extname:name extowner extnamespace:oid extrelocatable:bool extversion:text extconfig:_oid
  extcondition:_text
pg_catalog.pg_foreign_data_wrapper = oid:oid fdwname:name fdwowner fdwhandler fdwvalidator:oid fdwacl:_aclitem
  fdwoptions:_text
pg_catalog.pg_foreign_server = oid:oid srvname:name srvowner srvfdw:oid srvtype srvversion:text srvacl:_aclitem
  srvoptions:_text
pg_catalog.pg_foreign_table = ftrelid ftserver:oid ftoptions:_text
pg_catalog.pg_group = groname:name grosysid:oid grolist:_oid
pg_catalog.pg_index = indexrelid indrelid:oid indnatts indnkeyatts:int2 indisunique indnullsnotdistinct indisprimary
  indisexclusion indimmediate indisclustered indisvalid indcheckxmin indisready indislive indisreplident:bool
  indkey:int2vector indcollation indclass:oidvector indoption:int2vector indexprs indpred:pg_node_tree
pg_catalog.pg_indexes = schemaname tablename indexname tablespace:name indexdef:text
pg_catalog.pg_inherits = inhrelid inhparent:oid inhseqno:int4 inhdetachpending:bool
pg_catalog.pg_language = oid:oid lanname:name lanowner:oid lanispl lanpltrusted:bool lanplcallfoid laninline lanvalidator:oid
  lanacl:_aclitem
pg_catalog.pg_locks = locktype:text database relation:oid page:int4 tuple:int2 virtualxid:text transactionid:xid classid
  objid:oid objsubid:int2 virtualtransaction:text pid:int4 mode:text granted fastpath:bool waitstart:timestamptz
pg_catalog.pg_matviews = schemaname matviewname matviewowner tablespace:name hasindexes ispopulated:bool definition:text
pg_catalog.pg_namespace = oid:oid nspname:name nspowner:oid nspacl:_aclitem
pg_catalog.pg_opclass = oid opcmethod:oid opcname:name opcnamespace opcowner opcfamily opcintype:oid opcdefault:bool
  opckeytype:oid
pg_catalog.pg_partitioned_table = partrelid:oid partstrat:char partnatts:int2 partdefid:oid partattrs:int2vector partclass
  partcollation:oidvector partexprs:pg_node_tree
pg_catalog.pg_policies = schemaname tablename policyname:name permissive:text roles:_name cmd qual with_check:text
pg_catalog.pg_policy = oid:oid polname:name polrelid:oid polcmd:char polpermissive:bool polroles:_oid polqual
  polwithcheck:pg_node_tree
pg_catalog.pg_proc = oid:oid proname:name pronamespace proowner prolang:oid procost prorows:float4 provariadic:oid
  prosupport:regproc prokind:char prosecdef proleakproof proisstrict proretset:bool provolatile proparallel:char pronargs
  pronargdefaults:int2 prorettype:oid proargtypes:oidvector proallargtypes:_oid proargmodes:_char proargnames:_text
  proargdefaults:pg_node_tree protrftypes:_oid prosrc probin:text prosqlbody:pg_node_tree proconfig:_text proacl:_aclitem
pg_catalog.pg_publication = oid:oid pubname:name pubowner:oid puballtables pubinsert pubupdate pubdelete pubtruncate
  pubviaroot:bool
pg_catalog.pg_publication_namespace = oid pnpubid pnnspid:oid
pg_catalog.pg_publication_rel = oid prpubid prrelid:oid prqual:pg_node_tree prattrs:int2vector
pg_catalog.pg_range = rngtypid rngsubtype rngmultitypid rngcollation rngsubopc:oid rngcanonical rngsubdiff:regproc
pg_catalog.pg_rewrite = oid:oid rulename:name ev_class:oid ev_type ev_enabled:char is_instead:bool ev_qual
  ev_action:pg_node_tree
pg_catalog.pg_roles = rolname:name rolsuper rolinherit rolcreaterole rolcreatedb rolcanlogin rolreplication:bool
  rolconnlimit:int4 rolpassword:text rolvaliduntil:timestamptz rolbypassrls:bool rolconfig:_text oid:oid
pg_catalog.pg_rules = schemaname tablename rulename:name definition:text
pg_catalog.pg_seclabel = objoid classoid:oid objsubid:int4 provider label:text
pg_catalog.pg_seclabels = objoid classoid:oid objsubid:int4 objtype:text objnamespace:oid objname provider label:text
pg_catalog.pg_sequence = seqrelid seqtypid:oid seqstart seqincrement seqmax seqmin seqcache:int8 seqcycle:bool
pg_catalog.pg_sequences = schemaname sequencename sequenceowner:name data_type:regtype start_value min_value max_value
  increment_by:int8 cycle:bool cache_size last_value:int8
pg_catalog.pg_settings = name setting unit category short_desc extra_desc context vartype source min_val max_val:text
  enumvals:_text boot_val reset_val sourcefile:text sourceline:int4 pending_restart:bool
pg_catalog.pg_shdepend = dbid classid objid:oid objsubid:int4 refclassid refobjid:oid deptype:char
pg_catalog.pg_shdescription = objoid classoid:oid description:text
pg_catalog.pg_stat_user_indexes = relid indexrelid:oid schemaname relname indexrelname:name idx_scan idx_tup_read
  idx_tup_fetch:int8
pg_catalog.pg_stat_user_tables = relid:oid schemaname relname:name seq_scan seq_tup_read idx_scan idx_tup_fetch n_tup_ins
  n_tup_upd n_tup_del n_tup_hot_upd n_live_tup n_dead_tup n_mod_since_analyze n_ins_since_vacuum:int8 last_vacuum
  last_autovacuum last_analyze last_autoanalyze:timestamptz vacuum_count autovacuum_count analyze_count autoanalyze_count:int8
pg_catalog.pg_statistic_ext = oid stxrelid:oid stxname:name stxnamespace stxowner:oid stxstattarget:int4 stxkeys:int2vector
  stxkind:_char stxexprs:pg_node_tree
pg_catalog.pg_subscription = oid subdbid:oid subskiplsn:text subname:name subowner:oid subenabled subbinary substream:bool
  subtwophasestate:char subdisableonerr:bool subconninfo:text subslotname:name subsynccommit:text subpublications:_text
pg_catalog.pg_tables = schemaname tablename tableowner tablespace:name hasindexes hasrules hastriggers rowsecurity:bool
pg_catalog.pg_tablespace = oid:oid spcname:name spcowner:oid spcacl:_aclitem spcoptions:_text
pg_catalog.pg_trigger = oid tgrelid tgparentid:oid tgname:name tgfoid:oid tgtype:int2 tgenabled:char tgisinternal:bool
  tgconstrrelid tgconstrindid tgconstraint:oid tgdeferrable tginitdeferred:bool tgnargs:int2 tgattr:int2vector tgargs:bytea
  tgqual:pg_node_tree tgoldtable tgnewtable:name
pg_catalog.pg_type = oid:oid typname:name typnamespace typowner:oid typlen:int2 typbyval:bool typtype typcategory:char
  typispreferred typisdefined:bool typdelim:char typrelid:oid typsubscript:regproc typelem typarray:oid typinput typoutput
  typreceive typsend typmodin typmodout typanalyze:regproc typalign typstorage:char typnotnull:bool typbasetype:oid typtypmod
  typndims:int4 typcollation:oid typdefaultbin:pg_node_tree typdefault:text typacl:_aclitem
pg_catalog.pg_user = usename:name usesysid:oid usecreatedb usesuper userepl usebypassrls:bool passwd:text valuntil:timestamptz
  useconfig:_text
pg_catalog.pg_user_mappings = umid srvid:oid srvname:name umuser:oid usename:name umoptions:_text
pg_catalog.pg_views = schemaname viewname viewowner:name definition:text
`;

export const relationColumns: readonly RelationColumns[] = lists
  .trim()
  .split(/\n(?! )/)
  .map((list) => {
    const [path, runs] = list.split(' = ') as [string, string];
    const [schema, name] = path.split('.') as [string, string];
    const columns: { name: string; type: string }[] = [];
    const pending: string[] = [];
    for (const word of runs.split(/\s+/)) {
      const [column, type] = word.split(':') as [string, string | undefined];
      pending.push(column);
      if (type !== undefined) columns.push(...pending.splice(0).map((each) => ({ name: each, type })));
    }
    return { schema, name, columns };
  });
