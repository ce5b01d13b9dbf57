/**
 * The relations of the catalogue and their columns, as version 15 of Postgres has them, and those of `system` as ClickHouse: a name, then its columns, each run of them
 * with their type behind a colon. Relations that stand here and have no rows in `relations.ts` are empty.
 */
export interface RelationColumns {
  readonly schema: string;
  readonly name: string;
  readonly columns: readonly { readonly name: string; readonly type: string }[];
}

const relationColumnLists = `
information_schema.administrable_role_authorizations = grantee role_name:name is_grantable:varchar
information_schema.applicable_roles = grantee role_name:name is_grantable:varchar
information_schema.attributes = udt_catalog udt_schema udt_name attribute_name:name ordinal_position:int4 attribute_default
  is_nullable data_type:varchar character_maximum_length character_octet_length:int4 character_set_catalog
  character_set_schema character_set_name collation_catalog collation_schema collation_name:name numeric_precision
  numeric_precision_radix numeric_scale datetime_precision:int4 interval_type:varchar interval_precision:int4
  attribute_udt_catalog attribute_udt_schema attribute_udt_name scope_catalog scope_schema scope_name:name
  maximum_cardinality:int4 dtd_identifier:name is_derived_reference_attribute:varchar
information_schema.character_sets = character_set_catalog character_set_schema character_set_name character_repertoire
  form_of_use default_collate_catalog default_collate_schema default_collate_name:name
information_schema.check_constraint_routine_usage = constraint_catalog constraint_schema constraint_name specific_catalog
  specific_schema specific_name:name
information_schema.check_constraints = constraint_catalog constraint_schema constraint_name:name check_clause:varchar
information_schema.collation_character_set_applicability = collation_catalog collation_schema collation_name
  character_set_catalog character_set_schema character_set_name:name
information_schema.collations = collation_catalog collation_schema collation_name:name pad_attribute:varchar
information_schema.column_column_usage = table_catalog table_schema table_name column_name dependent_column:name
information_schema.column_domain_usage = domain_catalog domain_schema domain_name table_catalog table_schema table_name
  column_name:name
information_schema.column_options = table_catalog table_schema table_name column_name option_name:name option_value:varchar
information_schema.column_privileges = grantor grantee table_catalog table_schema table_name column_name:name privilege_type
  is_grantable:varchar
information_schema.column_udt_usage = udt_catalog udt_schema udt_name table_catalog table_schema table_name column_name:name
information_schema.columns = table_catalog table_schema table_name column_name:name ordinal_position:int4 column_default
  is_nullable data_type:varchar character_maximum_length character_octet_length numeric_precision numeric_precision_radix
  numeric_scale datetime_precision:int4 interval_type:varchar interval_precision:int4 character_set_catalog
  character_set_schema character_set_name collation_catalog collation_schema collation_name domain_catalog domain_schema
  domain_name udt_catalog udt_schema udt_name scope_catalog scope_schema scope_name:name maximum_cardinality:int4
  dtd_identifier:name is_self_referencing is_identity identity_generation identity_start identity_increment identity_maximum
  identity_minimum identity_cycle is_generated generation_expression is_updatable:varchar
information_schema.constraint_column_usage = table_catalog table_schema table_name column_name constraint_catalog
  constraint_schema constraint_name:name
information_schema.constraint_table_usage = table_catalog table_schema table_name constraint_catalog constraint_schema
  constraint_name:name
information_schema.data_type_privileges = object_catalog object_schema object_name:name object_type:varchar
  dtd_identifier:name
information_schema.domain_constraints = constraint_catalog constraint_schema constraint_name domain_catalog domain_schema
  domain_name:name is_deferrable initially_deferred:varchar
information_schema.domain_udt_usage = udt_catalog udt_schema udt_name domain_catalog domain_schema domain_name:name
information_schema.domains = domain_catalog domain_schema domain_name:name data_type:varchar character_maximum_length
  character_octet_length:int4 character_set_catalog character_set_schema character_set_name collation_catalog collation_schema
  collation_name:name numeric_precision numeric_precision_radix numeric_scale datetime_precision:int4 interval_type:varchar
  interval_precision:int4 domain_default:varchar udt_catalog udt_schema udt_name scope_catalog scope_schema scope_name:name
  maximum_cardinality:int4 dtd_identifier:name
information_schema.element_types = object_catalog object_schema object_name:name object_type:varchar
  collection_type_identifier:name data_type:varchar character_maximum_length character_octet_length:int4 character_set_catalog
  character_set_schema character_set_name collation_catalog collation_schema collation_name:name numeric_precision
  numeric_precision_radix numeric_scale datetime_precision:int4 interval_type:varchar interval_precision:int4
  domain_default:varchar udt_catalog udt_schema udt_name scope_catalog scope_schema scope_name:name maximum_cardinality:int4
  dtd_identifier:name
information_schema.enabled_roles = role_name:name
information_schema.foreign_data_wrapper_options = foreign_data_wrapper_catalog foreign_data_wrapper_name option_name:name
  option_value:varchar
information_schema.foreign_data_wrappers = foreign_data_wrapper_catalog foreign_data_wrapper_name
  authorization_identifier:name library_name foreign_data_wrapper_language:varchar
information_schema.foreign_server_options = foreign_server_catalog foreign_server_name option_name:name option_value:varchar
information_schema.foreign_servers = foreign_server_catalog foreign_server_name foreign_data_wrapper_catalog
  foreign_data_wrapper_name:name foreign_server_type foreign_server_version:varchar authorization_identifier:name
information_schema.foreign_table_options = foreign_table_catalog foreign_table_schema foreign_table_name option_name:name
  option_value:varchar
information_schema.foreign_tables = foreign_table_catalog foreign_table_schema foreign_table_name foreign_server_catalog
  foreign_server_name:name
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
information_schema.role_column_grants = grantor grantee table_catalog table_schema table_name column_name:name privilege_type
  is_grantable:varchar
information_schema.role_routine_grants = grantor grantee specific_catalog specific_schema specific_name routine_catalog
  routine_schema routine_name:name privilege_type is_grantable:varchar
information_schema.role_table_grants = grantor grantee table_catalog table_schema table_name:name privilege_type is_grantable
  with_hierarchy:varchar
information_schema.role_udt_grants = grantor grantee udt_catalog udt_schema udt_name:name privilege_type is_grantable:varchar
information_schema.role_usage_grants = grantor grantee object_catalog object_schema object_name:name object_type
  privilege_type is_grantable:varchar
information_schema.routine_column_usage = specific_catalog specific_schema specific_name routine_catalog routine_schema
  routine_name table_catalog table_schema table_name column_name:name
information_schema.routine_privileges = grantor grantee specific_catalog specific_schema specific_name routine_catalog
  routine_schema routine_name:name privilege_type is_grantable:varchar
information_schema.routine_routine_usage = specific_catalog specific_schema specific_name routine_catalog routine_schema
  routine_name:name
information_schema.routine_sequence_usage = specific_catalog specific_schema specific_name routine_catalog routine_schema
  routine_name sequence_catalog sequence_schema sequence_name:name
information_schema.routine_table_usage = specific_catalog specific_schema specific_name routine_catalog routine_schema
  routine_name table_catalog table_schema table_name:name
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
information_schema.sql_features = feature_id feature_name sub_feature_id sub_feature_name is_supported is_verified_by
  comments:varchar
information_schema.sql_implementation_info = implementation_info_id implementation_info_name:varchar integer_value:int4
  character_value comments:varchar
information_schema.sql_parts = feature_id feature_name is_supported is_verified_by comments:varchar
information_schema.sql_sizing = sizing_id:int4 sizing_name:varchar supported_value:int4 comments:varchar
information_schema.table_constraints = constraint_catalog constraint_schema constraint_name table_catalog table_schema
  table_name:name constraint_type is_deferrable initially_deferred enforced nulls_distinct:varchar
information_schema.table_privileges = grantor grantee table_catalog table_schema table_name:name privilege_type is_grantable
  with_hierarchy:varchar
information_schema.tables = table_catalog table_schema table_name:name table_type:varchar self_referencing_column_name:name
  reference_generation:varchar user_defined_type_catalog user_defined_type_schema user_defined_type_name:name
  is_insertable_into is_typed commit_action:varchar
information_schema.transforms = udt_catalog udt_schema udt_name specific_catalog specific_schema specific_name group_name:name
  transform_type:varchar
information_schema.triggered_update_columns = trigger_catalog trigger_schema trigger_name event_object_catalog
  event_object_schema event_object_table event_object_column:name
information_schema.triggers = trigger_catalog trigger_schema trigger_name:name event_manipulation:varchar event_object_catalog
  event_object_schema event_object_table:name action_order:int4 action_condition action_statement action_orientation
  action_timing:varchar action_reference_old_table action_reference_new_table action_reference_old_row
  action_reference_new_row:name created:timestamptz
information_schema.udt_privileges = grantor grantee udt_catalog udt_schema udt_name:name privilege_type is_grantable:varchar
information_schema.usage_privileges = grantor grantee object_catalog object_schema object_name:name object_type privilege_type
  is_grantable:varchar
information_schema.user_defined_types = user_defined_type_catalog user_defined_type_schema user_defined_type_name:name
  user_defined_type_category is_instantiable is_final ordering_form ordering_category:varchar ordering_routine_catalog
  ordering_routine_schema ordering_routine_name:name reference_type data_type:varchar character_maximum_length
  character_octet_length:int4 character_set_catalog character_set_schema character_set_name collation_catalog collation_schema
  collation_name:name numeric_precision numeric_precision_radix numeric_scale datetime_precision:int4 interval_type:varchar
  interval_precision:int4 source_dtd_identifier ref_dtd_identifier:name
information_schema.user_mapping_options = authorization_identifier foreign_server_catalog foreign_server_name option_name:name
  option_value:varchar
information_schema.user_mappings = authorization_identifier foreign_server_catalog foreign_server_name:name
information_schema.view_column_usage = view_catalog view_schema view_name table_catalog table_schema table_name
  column_name:name
information_schema.view_routine_usage = table_catalog table_schema table_name specific_catalog specific_schema
  specific_name:name
information_schema.view_table_usage = view_catalog view_schema view_name table_catalog table_schema table_name:name
information_schema.views = table_catalog table_schema table_name:name view_definition check_option is_updatable
  is_insertable_into is_trigger_updatable is_trigger_deletable is_trigger_insertable_into:varchar
pg_catalog.pg_aggregate = aggfnoid:regproc aggkind:char aggnumdirectargs:int2 aggtransfn aggfinalfn aggcombinefn aggserialfn
  aggdeserialfn aggmtransfn aggminvtransfn aggmfinalfn:regproc aggfinalextra aggmfinalextra:bool aggfinalmodify
  aggmfinalmodify:char aggsortop aggtranstype:oid aggtransspace:int4 aggmtranstype:oid aggmtransspace:int4 agginitval
  aggminitval:text
pg_catalog.pg_am = oid:oid amname:name amhandler:regproc amtype:char
pg_catalog.pg_amop = oid amopfamily amoplefttype amoprighttype:oid amopstrategy:int2 amoppurpose:char amopopr amopmethod
  amopsortfamily:oid
pg_catalog.pg_amproc = oid amprocfamily amproclefttype amprocrighttype:oid amprocnum:int2 amproc:regproc
pg_catalog.pg_attrdef = oid adrelid:oid adnum:int2 adbin:pg_node_tree
pg_catalog.pg_attribute = attrelid:oid attname:name atttypid:oid attstattarget:int4 attlen attnum:int2 attndims attcacheoff
  atttypmod:int4 attbyval:bool attalign attstorage attcompression:char attnotnull atthasdef atthasmissing:bool attidentity
  attgenerated:char attisdropped attislocal:bool attinhcount:int4 attcollation:oid attacl:_aclitem attoptions
  attfdwoptions:_text attmissingval:anyarray
pg_catalog.pg_auth_members = roleid member grantor:oid admin_option:bool
pg_catalog.pg_available_extension_versions = name:name version:text installed superuser trusted relocatable:bool schema:name
  requires:_name comment:text
pg_catalog.pg_available_extensions = name:name default_version installed_version comment:text
pg_catalog.pg_cast = oid castsource casttarget castfunc:oid castcontext castmethod:char
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
pg_catalog.pg_cursors = name statement:text is_holdable is_binary is_scrollable:bool creation_time:timestamptz
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
pg_catalog.pg_init_privs = objoid classoid:oid objsubid:int4 privtype:char initprivs:_aclitem
pg_catalog.pg_language = oid:oid lanname:name lanowner:oid lanispl lanpltrusted:bool lanplcallfoid laninline lanvalidator:oid
  lanacl:_aclitem
pg_catalog.pg_largeobject_metadata = oid lomowner:oid lomacl:_aclitem
pg_catalog.pg_locks = locktype:text database relation:oid page:int4 tuple:int2 virtualxid:text transactionid:xid classid
  objid:oid objsubid:int2 virtualtransaction:text pid:int4 mode:text granted fastpath:bool waitstart:timestamptz
pg_catalog.pg_matviews = schemaname matviewname matviewowner tablespace:name hasindexes ispopulated:bool definition:text
pg_catalog.pg_namespace = oid:oid nspname:name nspowner:oid nspacl:_aclitem
pg_catalog.pg_opclass = oid opcmethod:oid opcname:name opcnamespace opcowner opcfamily opcintype:oid opcdefault:bool
  opckeytype:oid
pg_catalog.pg_operator = oid:oid oprname:name oprnamespace oprowner:oid oprkind:char oprcanmerge oprcanhash:bool oprleft
  oprright oprresult oprcom oprnegate:oid oprcode oprrest oprjoin:regproc
pg_catalog.pg_opfamily = oid opfmethod:oid opfname:name opfnamespace opfowner:oid
pg_catalog.pg_parameter_acl = oid:oid parname:text paracl:_aclitem
pg_catalog.pg_partitioned_table = partrelid:oid partstrat:char partnatts:int2 partdefid:oid partattrs:int2vector partclass
  partcollation:oidvector partexprs:pg_node_tree
pg_catalog.pg_policies = schemaname tablename policyname:name permissive:text roles:_name cmd qual with_check:text
pg_catalog.pg_policy = oid:oid polname:name polrelid:oid polcmd:char polpermissive:bool polroles:_oid polqual
  polwithcheck:pg_node_tree
pg_catalog.pg_prepared_statements = name statement:text prepare_time:timestamptz parameter_types:text from_sql:bool
  generic_plans custom_plans:int8
pg_catalog.pg_prepared_xacts = transaction:xid gid:text prepared:timestamptz owner database:name
pg_catalog.pg_proc = oid:oid proname:name pronamespace proowner prolang:oid procost prorows:float4 provariadic:oid
  prosupport:regproc prokind:char prosecdef proleakproof proisstrict proretset:bool provolatile proparallel:char pronargs
  pronargdefaults:int2 prorettype:oid proargtypes:oidvector proallargtypes:_oid proargmodes:_char proargnames:_text
  proargdefaults:pg_node_tree protrftypes:_oid prosrc probin:text prosqlbody:pg_node_tree proconfig:_text proacl:_aclitem
pg_catalog.pg_publication = oid:oid pubname:name pubowner:oid puballtables pubinsert pubupdate pubdelete pubtruncate
  pubviaroot:bool
pg_catalog.pg_publication_namespace = oid pnpubid pnnspid:oid
pg_catalog.pg_publication_rel = oid prpubid prrelid:oid prqual:pg_node_tree prattrs:int2vector
pg_catalog.pg_publication_tables = pubname schemaname tablename:name attnames:_name rowfilter:text
pg_catalog.pg_range = rngtypid rngsubtype rngmultitypid rngcollation rngsubopc:oid rngcanonical rngsubdiff:regproc
pg_catalog.pg_replication_origin_status = local_id:oid external_id remote_lsn local_lsn:text
pg_catalog.pg_replication_slots = slot_name plugin:name slot_type:text datoid:oid database:name temporary active:bool
  active_pid:int4 xmin catalog_xmin:xid restart_lsn confirmed_flush_lsn wal_status:text safe_wal_size:int8 two_phase:bool
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
pg_catalog.pg_stat_activity = datid:oid datname:name pid leader_pid:int4 usesysid:oid usename:name application_name
  client_addr client_hostname:text client_port:int4 backend_start xact_start query_start state_change:timestamptz
  wait_event_type wait_event state:text backend_xid backend_xmin:xid query_id:int8 query backend_type:text
pg_catalog.pg_stat_all_indexes = relid indexrelid:oid schemaname relname indexrelname:name idx_scan idx_tup_read
  idx_tup_fetch:int8
pg_catalog.pg_stat_all_tables = relid:oid schemaname relname:name seq_scan seq_tup_read idx_scan idx_tup_fetch n_tup_ins
  n_tup_upd n_tup_del n_tup_hot_upd n_live_tup n_dead_tup n_mod_since_analyze n_ins_since_vacuum:int8 last_vacuum
  last_autovacuum last_analyze last_autoanalyze:timestamptz vacuum_count autovacuum_count analyze_count autoanalyze_count:int8
pg_catalog.pg_stat_archiver = archived_count:int8 last_archived_wal:text last_archived_time:timestamptz failed_count:int8
  last_failed_wal:text last_failed_time stats_reset:timestamptz
pg_catalog.pg_stat_bgwriter = checkpoints_timed checkpoints_req:int8 checkpoint_write_time checkpoint_sync_time:float8
  buffers_checkpoint buffers_clean maxwritten_clean buffers_backend buffers_backend_fsync buffers_alloc:int8
  stats_reset:timestamptz
pg_catalog.pg_stat_database = datid:oid datname:name numbackends:int4 xact_commit xact_rollback blks_read blks_hit
  tup_returned tup_fetched tup_inserted tup_updated tup_deleted conflicts temp_files temp_bytes deadlocks
  checksum_failures:int8 checksum_last_failure:timestamptz blk_read_time blk_write_time session_time active_time
  idle_in_transaction_time:float8 sessions sessions_abandoned sessions_fatal sessions_killed:int8 stats_reset:timestamptz
pg_catalog.pg_stat_database_conflicts = datid:oid datname:name confl_tablespace confl_lock confl_snapshot confl_bufferpin
  confl_deadlock:int8
pg_catalog.pg_stat_gssapi = pid:int4 gss_authenticated:bool principal:text encrypted:bool
pg_catalog.pg_stat_progress_analyze = pid:int4 datid:oid datname:name relid:oid phase:text sample_blks_total
  sample_blks_scanned ext_stats_total ext_stats_computed child_tables_total child_tables_done:int8
  current_child_table_relid:oid
pg_catalog.pg_stat_progress_basebackup = pid:int4 phase:text backup_total backup_streamed tablespaces_total
  tablespaces_streamed:int8
pg_catalog.pg_stat_progress_cluster = pid:int4 datid:oid datname:name relid:oid command phase:text cluster_index_relid:oid
  heap_tuples_scanned heap_tuples_written heap_blks_total heap_blks_scanned index_rebuild_count:int8
pg_catalog.pg_stat_progress_copy = pid:int4 datid:oid datname:name relid:oid command type:text bytes_processed bytes_total
  tuples_processed tuples_excluded:int8
pg_catalog.pg_stat_progress_create_index = pid:int4 datid:oid datname:name relid index_relid:oid command phase:text
  lockers_total lockers_done current_locker_pid blocks_total blocks_done tuples_total tuples_done partitions_total
  partitions_done:int8
pg_catalog.pg_stat_progress_vacuum = pid:int4 datid:oid datname:name relid:oid phase:text heap_blks_total heap_blks_scanned
  heap_blks_vacuumed index_vacuum_count max_dead_tuples num_dead_tuples:int8
pg_catalog.pg_stat_replication = pid:int4 usesysid:oid usename:name application_name client_addr client_hostname:text
  client_port:int4 backend_start:timestamptz backend_xmin:xid state sent_lsn write_lsn flush_lsn replay_lsn:text write_lag
  flush_lag replay_lag:interval sync_priority:int4 sync_state:text reply_time:timestamptz
pg_catalog.pg_stat_replication_slots = slot_name:text spill_txns spill_count spill_bytes stream_txns stream_count stream_bytes
  total_txns total_bytes:int8 stats_reset:timestamptz
pg_catalog.pg_stat_slru = name:text blks_zeroed blks_hit blks_read blks_written blks_exists flushes truncates:int8
  stats_reset:timestamptz
pg_catalog.pg_stat_ssl = pid:int4 ssl:bool version cipher:text bits:int4 client_dn client_serial issuer_dn:text
pg_catalog.pg_stat_subscription = subid:oid subname:name pid:int4 relid:oid received_lsn:text last_msg_send_time
  last_msg_receipt_time:timestamptz latest_end_lsn:text latest_end_time:timestamptz
pg_catalog.pg_stat_subscription_stats = subid:oid subname:name apply_error_count sync_error_count:int8 stats_reset:timestamptz
pg_catalog.pg_stat_sys_indexes = relid indexrelid:oid schemaname relname indexrelname:name idx_scan idx_tup_read
  idx_tup_fetch:int8
pg_catalog.pg_stat_sys_tables = relid:oid schemaname relname:name seq_scan seq_tup_read idx_scan idx_tup_fetch n_tup_ins
  n_tup_upd n_tup_del n_tup_hot_upd n_live_tup n_dead_tup n_mod_since_analyze n_ins_since_vacuum:int8 last_vacuum
  last_autovacuum last_analyze last_autoanalyze:timestamptz vacuum_count autovacuum_count analyze_count autoanalyze_count:int8
pg_catalog.pg_stat_user_functions = funcid:oid schemaname funcname:name calls:int8 total_time self_time:float8
pg_catalog.pg_stat_user_indexes = relid indexrelid:oid schemaname relname indexrelname:name idx_scan idx_tup_read
  idx_tup_fetch:int8
pg_catalog.pg_stat_user_tables = relid:oid schemaname relname:name seq_scan seq_tup_read idx_scan idx_tup_fetch n_tup_ins
  n_tup_upd n_tup_del n_tup_hot_upd n_live_tup n_dead_tup n_mod_since_analyze n_ins_since_vacuum:int8 last_vacuum
  last_autovacuum last_analyze last_autoanalyze:timestamptz vacuum_count autovacuum_count analyze_count autoanalyze_count:int8
pg_catalog.pg_stat_wal = wal_records wal_fpi:int8 wal_bytes:text wal_buffers_full wal_write wal_sync:int8 wal_write_time
  wal_sync_time:float8 stats_reset:timestamptz
pg_catalog.pg_stat_wal_receiver = pid:int4 status receive_start_lsn:text receive_start_tli:int4 written_lsn flushed_lsn:text
  received_tli:int4 last_msg_send_time last_msg_receipt_time:timestamptz latest_end_lsn:text latest_end_time:timestamptz
  slot_name sender_host:text sender_port:int4 conninfo:text
pg_catalog.pg_stat_xact_all_tables = relid:oid schemaname relname:name seq_scan seq_tup_read idx_scan idx_tup_fetch n_tup_ins
  n_tup_upd n_tup_del n_tup_hot_upd:int8
pg_catalog.pg_stat_xact_sys_tables = relid:oid schemaname relname:name seq_scan seq_tup_read idx_scan idx_tup_fetch n_tup_ins
  n_tup_upd n_tup_del n_tup_hot_upd:int8
pg_catalog.pg_stat_xact_user_functions = funcid:oid schemaname funcname:name calls:int8 total_time self_time:float8
pg_catalog.pg_stat_xact_user_tables = relid:oid schemaname relname:name seq_scan seq_tup_read idx_scan idx_tup_fetch n_tup_ins
  n_tup_upd n_tup_del n_tup_hot_upd:int8
pg_catalog.pg_statio_all_indexes = relid indexrelid:oid schemaname relname indexrelname:name idx_blks_read idx_blks_hit:int8
pg_catalog.pg_statio_all_sequences = relid:oid schemaname relname:name blks_read blks_hit:int8
pg_catalog.pg_statio_all_tables = relid:oid schemaname relname:name heap_blks_read heap_blks_hit idx_blks_read idx_blks_hit
  toast_blks_read toast_blks_hit tidx_blks_read tidx_blks_hit:int8
pg_catalog.pg_statio_sys_indexes = relid indexrelid:oid schemaname relname indexrelname:name idx_blks_read idx_blks_hit:int8
pg_catalog.pg_statio_sys_sequences = relid:oid schemaname relname:name blks_read blks_hit:int8
pg_catalog.pg_statio_sys_tables = relid:oid schemaname relname:name heap_blks_read heap_blks_hit idx_blks_read idx_blks_hit
  toast_blks_read toast_blks_hit tidx_blks_read tidx_blks_hit:int8
pg_catalog.pg_statio_user_indexes = relid indexrelid:oid schemaname relname indexrelname:name idx_blks_read idx_blks_hit:int8
pg_catalog.pg_statio_user_sequences = relid:oid schemaname relname:name blks_read blks_hit:int8
pg_catalog.pg_statio_user_tables = relid:oid schemaname relname:name heap_blks_read heap_blks_hit idx_blks_read idx_blks_hit
  toast_blks_read toast_blks_hit tidx_blks_read tidx_blks_hit:int8
pg_catalog.pg_statistic_ext = oid stxrelid:oid stxname:name stxnamespace stxowner:oid stxstattarget:int4 stxkeys:int2vector
  stxkind:_char stxexprs:pg_node_tree
pg_catalog.pg_stats = schemaname tablename attname:name inherited:bool null_frac:float4 avg_width:int4 n_distinct:float4
  most_common_vals:text most_common_freqs:_float4 histogram_bounds:text correlation:float4 most_common_elems:text
  most_common_elem_freqs elem_count_histogram:_float4
pg_catalog.pg_stats_ext = schemaname tablename statistics_schemaname statistics_name statistics_owner:name attnames:_name
  exprs:_text kinds:_char inherited:bool n_distinct dependencies:text most_common_vals:_text most_common_val_nulls:_bool
  most_common_freqs most_common_base_freqs:text
pg_catalog.pg_subscription = oid subdbid:oid subskiplsn:text subname:name subowner:oid subenabled subbinary substream:bool
  subtwophasestate:char subdisableonerr:bool subconninfo:text subslotname:name subsynccommit:text subpublications:_text
pg_catalog.pg_subscription_rel = srsubid srrelid:oid srsubstate:char srsublsn:text
pg_catalog.pg_tables = schemaname tablename tableowner tablespace:name hasindexes hasrules hastriggers rowsecurity:bool
pg_catalog.pg_tablespace = oid:oid spcname:name spcowner:oid spcacl:_aclitem spcoptions:_text
pg_catalog.pg_timezone_names = name abbrev:text utc_offset:interval is_dst:bool
pg_catalog.pg_transform = oid trftype trflang:oid trffromsql trftosql:regproc
pg_catalog.pg_trigger = oid tgrelid tgparentid:oid tgname:name tgfoid:oid tgtype:int2 tgenabled:char tgisinternal:bool
  tgconstrrelid tgconstrindid tgconstraint:oid tgdeferrable tginitdeferred:bool tgnargs:int2 tgattr:int2vector tgargs:bytea
  tgqual:pg_node_tree tgoldtable tgnewtable:name
pg_catalog.pg_ts_config = oid:oid cfgname:name cfgnamespace cfgowner cfgparser:oid
pg_catalog.pg_ts_config_map = mapcfg:oid maptokentype mapseqno:int4 mapdict:oid
pg_catalog.pg_ts_dict = oid:oid dictname:name dictnamespace dictowner dicttemplate:oid dictinitoption:text
pg_catalog.pg_ts_parser = oid:oid prsname:name prsnamespace:oid prsstart prstoken prsend prsheadline prslextype:regproc
pg_catalog.pg_ts_template = oid:oid tmplname:name tmplnamespace:oid tmplinit tmpllexize:regproc
pg_catalog.pg_type = oid:oid typname:name typnamespace typowner:oid typlen:int2 typbyval:bool typtype typcategory:char
  typispreferred typisdefined:bool typdelim:char typrelid:oid typsubscript:regproc typelem typarray:oid typinput typoutput
  typreceive typsend typmodin typmodout typanalyze:regproc typalign typstorage:char typnotnull:bool typbasetype:oid typtypmod
  typndims:int4 typcollation:oid typdefaultbin:pg_node_tree typdefault:text typacl:_aclitem
pg_catalog.pg_user = usename:name usesysid:oid usecreatedb usesuper userepl usebypassrls:bool passwd:text valuntil:timestamptz
  useconfig:_text
pg_catalog.pg_user_mappings = umid srvid:oid srvname:name umuser:oid usename:name umoptions:_text
pg_catalog.pg_views = schemaname viewname viewowner:name definition:text
db.labels = label:text
db.propertykeys = propertyKey:text
db.relationshiptypes = relationshipType:text
dbms.components = name:text versions:json edition:text
system.columns = database table name type:text position:int8 default_kind default_expression comment:text is_in_primary_key:int8
system.databases = name engine data_path metadata_path uuid comment:text
system.functions = name:text is_aggregate case_insensitive:int8 alias_to description:text
system.one = dummy:int8
system.settings = name value:text changed:int8 description:text min max:text readonly:int8 type:text
system.tables = database name engine uuid:text is_temporary:int8 metadata_path create_table_query engine_full as_select
  partition_key sorting_key primary_key sampling_key comment:text total_rows total_bytes:int8
`;

export const relationColumns: readonly RelationColumns[] = relationColumnLists
  .trim()
  .split(/\n(?! )/)
  .map((relationList) => {
    const [relationPath, columnRuns] = relationList.split(' = ') as [string, string];
    const [schema, name] = relationPath.split('.') as [string, string];
    const columns: { name: string; type: string }[] = [];
    const untypedColumns: string[] = [];
    for (const columnWord of columnRuns.split(/\s+/)) {
      const [columnName, type] = columnWord.split(':') as [string, string | undefined];
      untypedColumns.push(columnName);
      if (type !== undefined) columns.push(...untypedColumns.splice(0).map((untypedColumn) => ({ name: untypedColumn, type })));
    }
    return { schema, name, columns };
  });
