/* weightcache: model weights that stay resident outside the engine.
 *
 * The C ABI: the only symbols that libweightcache exports. C99 and C++.
 *
 * Conventions
 *   - Every function that can fail returns int: WC_OK (0) or a negative code that is never
 *     renumbered. Details of the calling thread's last failure: wc_last_error_*().
 *   - Handles are opaque, each with one free function, which accepts NULL. A handle may be used by
 *     several threads unless its comment says otherwise; freeing it while another thread uses it is
 *     an error of the caller.
 *   - Pointers returned into a handle live as long as the handle, unless said otherwise.
 *   - Structs that may grow begin with `struct_size`: set it to sizeof the struct (or use the
 *     WC_*_INIT macro, which zeroes the rest). Zero means default. Members are only ever appended.
 *   - Texts are UTF-8, sizes and offsets are in bytes, strides in elements, times in nanoseconds.
 *   - The library prints nothing, installs no signal handler, has no static constructor and starts
 *     no thread of its own but the reading threads of wc_load() and wc_verify(), which are joined
 *     before those return.
 *   - fork(): a child may go on reading memory that was attached before (its mappings are its own),
 *     and may do nothing else with handles made before the fork but free them: its copies of the
 *     connections are closed, so that a lease ends with the process that took it. A child makes
 *     connections of its own.
 */
#ifndef WEIGHTCACHE_WEIGHTCACHE_H_
#define WEIGHTCACHE_WEIGHTCACHE_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define WC_API __attribute__((visibility("default")))
#else
#define WC_API
#endif

#define WC_VERSION_MAJOR 0
#define WC_VERSION_MINOR 1
#define WC_VERSION_PATCH 0

/* ---- errors ---------------------------------------------------------------------------------- */

enum {
  WC_OK = 0,
  WC_INVALID_ARGUMENT = -1, /* fix the call */
  WC_NOT_FOUND = -2,        /* no such entry, file or name */
  WC_ALREADY_EXISTS = -3,   /* other content has the name */
  WC_MISMATCH = -4,         /* other weights than asked for */
  WC_CORRUPT = -5,          /* refetch the file, or report the peer */
  WC_UNSUPPORTED = -6,      /* other machine, driver or method */
  WC_EXHAUSTED = -7,        /* free something, or wait */
  WC_BUSY = -8,             /* retry */
  WC_TIMED_OUT = -9,        /* the limit passed */
  WC_CANCELLED = -10,       /* the caller said so */
  WC_DISCONNECTED = -11,    /* connect again */
  WC_DENIED = -12,          /* ask for the right */
  WC_VERSION = -13,         /* upgrade one side */
  WC_IO = -14,              /* the operating system refused */
  WC_DEVICE = -15,          /* the GPU is suspect */
  WC_INTERNAL = -16         /* report a bug */
};

/* "not_found" for WC_NOT_FOUND; "internal" for a number that is no code. Static. */
WC_API const char* wc_error_name(int code);
/* Of the calling thread's last failed call; valid until its next call into the library. The origin
 * is the errno's or CUresult's name, "" where nothing below failed. */
WC_API int wc_last_error_code(void);
WC_API const char* wc_last_error_message(void);
WC_API const char* wc_last_error_origin(void);

/* "0.1.0". Static. */
WC_API const char* wc_version(void);

enum { WC_LOG_DEBUG = 0, WC_LOG_INFO = 1, WC_LOG_WARNING = 2, WC_LOG_ERROR = 3 };
/* One line, not terminated by a newline, valid during the call, from any thread. */
typedef void (*wc_log_function)(int level, const char* line, void* user);
/* NULL (the default) silences. Process-wide. */
WC_API void wc_set_log(wc_log_function function, void* user);

/* ---- connection ------------------------------------------------------------------------------ */

typedef struct wc_connection wc_connection;

/* Cancels calls from another thread (or a signal handler: wc_cancel is async-signal-safe). */
typedef struct wc_cancellation wc_cancellation;
WC_API int wc_cancellation_new(wc_cancellation** out);
WC_API void wc_cancel(wc_cancellation* cancellation);
WC_API int wc_is_cancelled(const wc_cancellation* cancellation);
WC_API void wc_cancellation_free(wc_cancellation* cancellation);

typedef struct wc_connect_options {
  size_t struct_size;
  const char* socket;           /* NULL: $WEIGHTCACHE_SOCKET, else the user's, else the system's */
  const char* label;            /* who this is, for people; NULL: the program's name */
  const uint32_t* trusted_uids; /* beside own and root: whose daemon is accepted */
  size_t trusted_uid_count;
  uint64_t timeout_ns;          /* for connecting and for each short request; 0: 10 s */
} wc_connect_options;
#define WC_CONNECT_OPTIONS_INIT {sizeof(wc_connect_options), NULL, NULL, NULL, 0, 0}

/* Connects and says hello. `options` may be NULL. Errors: WC_DISCONNECTED (each path tried and
 * why), WC_DENIED (a listener or directory of somebody else's), WC_VERSION, WC_TIMED_OUT. */
WC_API int wc_connect(const wc_connect_options* options, wc_connection** out);
/* Attachments and publications made through it keep the connection alive until they are freed. */
WC_API void wc_connection_free(wc_connection* connection);

typedef struct wc_daemon_info {
  size_t struct_size;
  const char* epoch;    /* 32 hexadecimal digits: one incarnation of the daemon */
  const char* software; /* "weightcache 0.1.0" */
  const char* socket;   /* the path that served */
  int32_t pid;          /* as the daemon says; for people */
  uint32_t protocol;
} wc_daemon_info;
WC_API int wc_connection_daemon(const wc_connection* connection, wc_daemon_info* out);

/* ---- entries --------------------------------------------------------------------------------- */

enum { WC_LOADING = 0, WC_PUBLISHED = 1, WC_DRAINING = 2, WC_GONE = 3, WC_FAILED = 4 };
/* By WC_TORCH_IPC other libraries publish; this one lists such entries, and maps none. */
enum { WC_HOST_FD = 1, WC_VMM_FD = 2, WC_TORCH_IPC = 3 };

/* "published", "host_fd". Static; "unknown" for a number that is none. */
WC_API const char* wc_state_name(int state);
WC_API const char* wc_transport_name(int transport);

typedef struct wc_entry_info {
  size_t struct_size;
  const char* name;
  const char* form;        /* "raw", or canonical JSON */
  const char* fingerprint; /* 32 hexadecimal digits; "" while it is unknown */
  const char* device;      /* "cpu" or a UUID */
  const char* source;      /* where it came from, for people; "" unknown */
  uint32_t rank;
  uint32_t world;
  uint64_t generation;     /* 0 while loading */
  int32_t state;           /* WC_LOADING ... */
  int32_t transport;       /* WC_HOST_FD ... */
  uint64_t tensors;
  uint64_t bytes;          /* resident */
  uint32_t segments;
  uint32_t leases;
  int32_t pinned;
  uint64_t done_bytes;     /* of a load in progress */
  uint64_t total_bytes;
  int64_t since_unix_ns;   /* of publication, or of the load's start */
  uint64_t address;        /* fixed virtual address of its first segment, the same in every process;
                              0: any */
} wc_entry_info;

/* What an entry is asked for by. `text` is NAME, NAME@GENERATION, @FINGERPRINT (a unique prefix of
 * at least 4 digits), or a checkpoint's path (one that begins with '/', './', '../' or '~', or that
 * names no entry and exists). */
typedef struct wc_selector {
  size_t struct_size;
  const char* text;
  const char* form;   /* NULL: raw if there is one, else the only one */
  const char* device; /* NULL: any, if only one has it; "cpu", "cuda:N" (this process's), a UUID */
  uint32_t rank;
  uint32_t world;     /* 0: any, if there is only one */
} wc_selector;
#define WC_SELECTOR_INIT {sizeof(wc_selector), NULL, NULL, NULL, 0, 0}

/* Called while a call waits or loads, from the calling thread or one of the call's own threads, ten
 * times a second at most. `waiting`: another process loads, and this call waits for it. */
typedef struct wc_progress {
  size_t struct_size;
  uint64_t done_bytes;
  uint64_t total_bytes;
  uint64_t bytes_per_s;
  uint64_t elapsed_ns;
  int32_t waiting;
} wc_progress;
typedef void (*wc_progress_function)(const wc_progress* progress, void* user);

typedef struct wc_entry_list wc_entry_list;
/* Every entry that the selector matches (NULL: all), also those that have been evicted and that
 * somebody still holds (WC_GONE). */
WC_API int wc_list(wc_connection* connection, const wc_selector* selector, wc_entry_list** out);
WC_API size_t wc_entry_list_count(const wc_entry_list* list);
/* Views into the list. Errors: WC_INVALID_ARGUMENT (index). */
WC_API int wc_entry_list_at(const wc_entry_list* list, size_t index, wc_entry_info* out);
WC_API void wc_entry_list_free(wc_entry_list* list);

/* ---- attach ---------------------------------------------------------------------------------- */

typedef struct wc_attachment wc_attachment;

enum {
  WC_ACCESS_DEFAULT = 0, /* private for host memory, shared (read-only) for a GPU's */
  WC_ACCESS_SHARED = 1,  /* read-only: what memory registration and mlock need */
  WC_ACCESS_PRIVATE = 2  /* copy-on-write, host memory only: writing disturbs nobody */
};

typedef struct wc_attach_options {
  size_t struct_size;
  int32_t access;              /* WC_ACCESS_*; $WEIGHTCACHE_STRICT=1 makes every one read-only */
  const char* expect;          /* NULL, or a fingerprint document (JSON, any subset of its fields):
                                  others than these are WC_MISMATCH, naming each field */
  uint64_t wait_ns;            /* 0: an entry that is not published is an error at once */
  wc_progress_function progress;
  void* user;
  wc_cancellation* cancellation;
} wc_attach_options;
#define WC_ATTACH_OPTIONS_INIT {sizeof(wc_attach_options), 0, NULL, 0, NULL, NULL, NULL}

/* Maps a published entry into this process. The memory stays as it is until wc_detach, whatever
 * happens to the publisher and the daemon.
 * Errors: WC_NOT_FOUND, WC_BUSY (still loading, draining; or its fixed address is taken in this
 * process), WC_MISMATCH, WC_INVALID_ARGUMENT (more than one entry matches: they are listed),
 * WC_CORRUPT (it is not what its publisher said; where this is the first reader, it has failed from
 * then on, and the next load of it reads anew), WC_UNSUPPORTED, WC_TIMED_OUT, WC_CANCELLED, ... */
WC_API int wc_attach(wc_connection* connection, const wc_selector* selector,
                     const wc_attach_options* options, wc_attachment** out);
/* Unmaps everything and ends the lease; every address taken from it becomes invalid. Where tensors
 * made by wc_attachment_dlpack() live, the handle alone ends, and all of that waits for the last of
 * them. */
WC_API void wc_detach(wc_attachment* attachment);

WC_API int wc_attachment_entry(const wc_attachment* attachment, wc_entry_info* out);
/* From the call of wc_attach to its return. */
WC_API uint64_t wc_attachment_attach_ns(const wc_attachment* attachment);
/* The epoch of the daemon that gave it. */
WC_API const char* wc_attachment_epoch(const wc_attachment* attachment);

/* Element types, as in the safetensors format. Never renumbered. */
enum {
  WC_BOOL = 1, WC_F4 = 2, WC_F6_E2M3 = 3, WC_F6_E3M2 = 4, WC_U8 = 5, WC_I8 = 6, WC_F8_E5M2 = 7,
  WC_F8_E4M3 = 8, WC_F8_E8M0 = 9, WC_F8_E4M3FNUZ = 10, WC_F8_E5M2FNUZ = 11, WC_I16 = 12,
  WC_U16 = 13, WC_F16 = 14, WC_BF16 = 15, WC_I32 = 16, WC_U32 = 17, WC_F32 = 18, WC_C64 = 19,
  WC_F64 = 20, WC_I64 = 21, WC_U64 = 22
};
/* "BF16", and its bits; NULL and 0 for a number that is none. wc_dtype_named: 0 for no name. */
WC_API const char* wc_dtype_name(int dtype);
WC_API uint32_t wc_dtype_bits(int dtype);
WC_API int wc_dtype_named(const char* name);

enum { WC_PARAMETER = 0, WC_BUFFER = 1 };
enum { WC_TENSOR_PERSISTENT = 1, WC_TENSOR_REQUIRES_GRAD = 2 };

typedef struct wc_tensor {
  size_t struct_size;
  const char* name;       /* name_bytes long, NOT terminated by a zero */
  size_t name_bytes;
  const int64_t* shape;   /* rank dimensions */
  const int64_t* strides; /* rank strides in elements; NULL: contiguous, row-major */
  void* data;             /* host address, or device address of a GPU */
  uint64_t bytes;         /* from the first element's start to the last one's end */
  uint64_t offset;        /* in its segment */
  uint32_t segment;
  uint32_t rank;
  int32_t dtype;          /* WC_BF16 ... */
  int32_t kind;           /* WC_PARAMETER, WC_BUFFER */
  uint32_t flags;         /* WC_TENSOR_* */
} wc_tensor;

WC_API size_t wc_attachment_tensor_count(const wc_attachment* attachment);
/* In the publisher's order. Costs some ns; `out->struct_size` must be set. */
WC_API int wc_attachment_tensor_at(const wc_attachment* attachment, size_t index, wc_tensor* out);
/* `count` of them from `first` on, at once: `out[0].struct_size` must be set, and is the size of
 * each of the array's elements. Errors: WC_INVALID_ARGUMENT (past the last tensor). */
WC_API int wc_attachment_tensors(const wc_attachment* attachment, size_t first, size_t count,
                                 wc_tensor* out);
/* By name. Errors: WC_NOT_FOUND, with the nearest names. */
WC_API int wc_attachment_tensor(const wc_attachment* attachment, const char* name, wc_tensor* out);
/* Its place in the publisher's order. Errors: as above. */
WC_API int wc_attachment_find(const wc_attachment* attachment, const char* name, size_t* index);
/* Every name in the publisher's order, each followed by a newline (no name has one), nothing after
 * the last. `*bytes` is what they need; `out` NULL only asks. Errors: WC_INVALID_ARGUMENT (no
 * room). */
WC_API int wc_attachment_names(const wc_attachment* attachment, char* out, size_t capacity,
                               size_t* bytes);

/* Tensors as frameworks exchange them. Each pointer written is a DLManagedTensor (a
 * DLManagedTensorVersioned of DLPack 1.x, which tells that memory is read-only) and keeps mapping
 * and lease until its deleter is called, once, on any thread, also after wc_detach() and at the
 * process's end. The library is never unloaded. */
typedef struct wc_dlpack_options {
  size_t struct_size;
  int32_t versioned;
  uint32_t as_bytes; /* bit 1 << WC_<dtype>: tensors of that dtype are given as unsigned bytes, the
                        last dimension counting them, for frameworks without the type */
} wc_dlpack_options;
#define WC_DLPACK_OPTIONS_INIT {sizeof(wc_dlpack_options), 0, 0}
/* `count` tensors from `first` on into `out`. `options` may be NULL. Errors: WC_INVALID_ARGUMENT
 * (past the last tensor), WC_UNSUPPORTED (no form in bytes); nothing is written then. */
WC_API int wc_attachment_dlpack(const wc_attachment* attachment, const wc_dlpack_options* options,
                                size_t first, size_t count, void** out);
/* What a consumer would do: calls the deleter. NULL does nothing. */
WC_API void wc_dlpack_delete(void* managed, int versioned);
/* For PyCapsule_New(): deletes the tensor of a capsule that nobody has consumed. */
WC_API void wc_dlpack_capsule_destructor(void* capsule);
/* The same for Python, in one call: `*out` is a new reference to a list. With `exchange` NULL it is
 * of capsules that nobody has consumed yet; else of the framework's own tensors, and `exchange` is
 * what its tensor type holds in the capsule `__dlpack_c_exchange_api__` (DLPack 1.3). The caller
 * holds the interpreter's lock. Errors: as above; WC_UNSUPPORTED (no Python in this process,
 * another major version of DLPack, or the framework refused: with its Python exception set). */
WC_API int wc_attachment_dlpack_list(const wc_attachment* attachment,
                                     const wc_dlpack_options* options, const void* exchange,
                                     size_t first, size_t count, void** out);
/* How many tensors made by wc_attachment_dlpack() and wc_attachment_dlpack_list() live. */
WC_API size_t wc_attachment_living(const wc_attachment* attachment);

typedef struct wc_segment {
  size_t struct_size;
  void* data;
  uint64_t bytes;
  const char* digest; /* "xxh3t-4m:...", "" none */
} wc_segment;
WC_API size_t wc_attachment_segment_count(const wc_attachment* attachment);
WC_API int wc_attachment_segment_at(const wc_attachment* attachment, size_t index, wc_segment* out);

enum { WC_VALUE_BOOL = 1, WC_VALUE_INT = 2, WC_VALUE_FLOAT = 3, WC_VALUE_TEXT = 4,
       WC_VALUE_BYTES = 5 };
typedef struct wc_attribute {
  size_t struct_size;
  const char* path;  /* a tensor's name or a module's path ("" the root) */
  const char* name;
  int32_t of_tensor;
  int32_t type;      /* WC_VALUE_* */
  int64_t integer;   /* also of a bool: 0 or 1 */
  double real;
  const void* data;  /* text (terminated by a zero) or bytes */
  size_t data_bytes; /* without the zero */
} wc_attribute;
WC_API size_t wc_attachment_attribute_count(const wc_attachment* attachment);
WC_API int wc_attachment_attribute_at(const wc_attachment* attachment, size_t index,
                                      wc_attribute* out);

typedef struct wc_provenance {
  size_t struct_size;
  const char* fingerprint_json; /* the canonical document behind the fingerprint */
  const char* publisher;
  const char* source;
  const char* command;
  const char* host;
  int64_t published_unix_ns;
  uint64_t took_ns;
} wc_provenance;
WC_API int wc_attachment_provenance(const wc_attachment* attachment, wc_provenance* out);

typedef struct wc_wait_options {
  size_t struct_size;
  uint64_t wait_ns;
  wc_progress_function progress;
  void* user;
  wc_cancellation* cancellation;
} wc_wait_options;
#define WC_WAIT_OPTIONS_INIT {sizeof(wc_wait_options), 0, NULL, NULL, NULL}
/* Until an entry is published; with wait_ns 0 a look-up that answers at once. `*out` is a list of
 * one. Errors: WC_TIMED_OUT, WC_NOT_FOUND and WC_BUSY (wait_ns 0), WC_CANCELLED. */
WC_API int wc_wait(wc_connection* connection, const wc_selector* selector,
                   const wc_wait_options* options, wc_entry_list** out);

/* ---- load ------------------------------------------------------------------------------------ */

enum { WC_TIER_AUTO = 0, WC_TIER_HOT = 1, WC_TIER_DIRECT_URING = 2, WC_TIER_DIRECT = 3,
       WC_TIER_BUFFERED = 4 };

typedef struct wc_load_options {
  size_t struct_size;
  const char* name;      /* NULL: `org/name` of a hub checkpoint, else the directory's or file's */
  const char* device;    /* NULL: the only GPU, "cpu" where there is none */
  const char* transport; /* NULL or "": the device's default */
  int32_t replace;       /* other content under the name: a new generation instead of an error */
  int32_t no_wait;       /* somebody else is loading it: WC_BUSY instead of waiting */
  int32_t compat;        /* accept what strict reading refuses but the format allows */
  int32_t allow_trailing;
  int32_t follow_symlinks;
  int32_t tier;          /* WC_TIER_* */
  uint32_t threads;      /* 0: chosen */
  uint64_t wait_ns;      /* limit for waiting behind another loader; 0: none */
  wc_progress_function progress;
  void* user;
  wc_cancellation* cancellation;
  int32_t no_digest;     /* read without digesting: faster, and known by its files' names, sizes and
                            times alone; see wc_load */
  uint64_t address;      /* where every process maps it, this one too: for engines that keep raw
                            addresses, as in captured graphs; a multiple of 2 MiB; 0: anywhere */
} wc_load_options;
#define WC_LOAD_OPTIONS_INIT \
  {sizeof(wc_load_options), NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL, 0, 0}

enum { WC_LOADED = 0, WC_ALREADY_RESIDENT = 1, WC_PREPARED = 2 };
/* "loaded", "already_resident", "prepared". Static. */
WC_API const char* wc_outcome_name(int outcome);

typedef struct wc_load_result wc_load_result;
typedef struct wc_load_info {
  size_t struct_size;
  int32_t outcome;     /* WC_LOADED ... */
  int32_t waited;      /* another process loaded it while this call waited */
  int32_t tier;        /* that read most of the bytes; WC_TIER_AUTO where nothing was read */
  uint64_t total_ns;   /* the whole call */
  uint64_t fill_ns;    /* of it, reading */
  uint64_t read_bytes;
} wc_load_info;

/* Makes a checkpoint (a directory, a single file, `org/name` in the hub's cache) resident and
 * published, or finds it so: unchanged files cost a few stat calls and no reading.
 * With `no_digest` its fingerprint's source is a source_id made of the files' receipts: a copy of
 * the same bytes elsewhere, or a load with digests, is another source to the daemon.
 * Errors: WC_CORRUPT (file, tensor, rule, numbers), WC_ALREADY_EXISTS, WC_EXHAUSTED, WC_NOT_FOUND,
 * WC_BUSY, WC_MISMATCH (resident at another address), WC_CANCELLED, ...: nothing half-loaded is
 * ever published. */
WC_API int wc_load(wc_connection* connection, const char* source, const wc_load_options* options,
                   wc_load_result** out);
WC_API int wc_load_result_info(const wc_load_result* result, wc_load_info* out);
WC_API int wc_load_result_entry(const wc_load_result* result, wc_entry_info* out);
WC_API void wc_load_result_free(wc_load_result* result);

/* ---- verify ---------------------------------------------------------------------------------- */

typedef struct wc_verification wc_verification;
typedef struct wc_verify_options {
  size_t struct_size;
  const char* source; /* NULL: where the entry says that it came from */
  size_t limit;       /* of mismatches reported, one a tensor; 0: 1000 */
  int32_t compat;
  int32_t allow_trailing;
  int32_t follow_symlinks;
  wc_progress_function progress;
  void* user;
  wc_cancellation* cancellation;
} wc_verify_options;
#define WC_VERIFY_OPTIONS_INIT {sizeof(wc_verify_options), NULL, 0, 0, 0, 0, NULL, NULL, NULL}

/* Compares resident bytes with the disk. Returns WC_OK also where they differ: ask the count.
 * Errors: WC_MISMATCH where tensors' names, dtypes or shapes differ; as wc_attach and wc_load. */
WC_API int wc_verify(wc_connection* connection, const wc_selector* selector,
                     const wc_verify_options* options, wc_verification** out);
WC_API int wc_verification_entry(const wc_verification* verification, wc_entry_info* out);
WC_API uint64_t wc_verification_bytes(const wc_verification* verification);
WC_API size_t wc_verification_mismatch_count(const wc_verification* verification);
/* The tensor's name (terminated) and the offset in it of the first byte that differs. */
WC_API int wc_verification_mismatch_at(const wc_verification* verification, size_t index,
                                       const char** tensor, uint64_t* offset);
WC_API void wc_verification_free(wc_verification* verification);

/* ---- publish --------------------------------------------------------------------------------- */

/* Anybody who can make bytes can fill an entry: begin, reserve segments, write into them, describe
 * the tensors, publish. Used by one thread at a time, but for wc_publication_write, which threads
 * may call together. */
typedef struct wc_publication wc_publication;

typedef struct wc_publish_options {
  size_t struct_size;
  const char* name;        /* required */
  const char* fingerprint; /* required: the document, JSON:
                              {"source": {...}, "form": ..., "partition": {...}} */
  const char* device;      /* NULL: "cpu" */
  const char* transport;   /* NULL or "": the device's default */
  const char* publisher;   /* for provenance; NULL: the program's name */
  const char* source;      /* for provenance; NULL: "" */
  uint32_t rank;
  uint32_t world;          /* 0: 1 */
  int32_t replace;
  int32_t no_wait;
  uint64_t total_bytes;    /* expected, for those who wait; 0: unknown */
  uint64_t wait_ns;        /* 0: no limit */
  wc_progress_function progress;
  void* user;
  wc_cancellation* cancellation;
  uint64_t address;        /* see wc_load_options; further segments follow, 32 MiB apart at least */
} wc_publish_options;
#define WC_PUBLISH_OPTIONS_INIT \
  {sizeof(wc_publish_options), NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, NULL, NULL, \
   NULL, 0}

/* Asks for the right to fill an entry. WC_OK and *out set: it was granted. WC_OK and *out NULL: the
 * content is resident already, under this name from now on; attach to it.
 * Errors: WC_ALREADY_EXISTS, WC_BUSY, WC_INVALID_ARGUMENT, ... */
WC_API int wc_publication_begin(wc_connection* connection, const wc_publish_options* options,
                                wc_publication** out);
/* A further segment of at least `bytes`, reserved before this returns. `*address` is where it is
 * mapped for writing: a host address, or a device address. Errors: WC_EXHAUSTED (needed, free, and
 * what could be evicted). */
WC_API int wc_publication_reserve(wc_publication* publication, uint64_t bytes, uint32_t* segment,
                                  void** address);
/* Copies from host memory into a segment. */
WC_API int wc_publication_write(wc_publication* publication, uint32_t segment, uint64_t offset,
                                const void* data, uint64_t bytes);

typedef struct wc_tensor_description {
  size_t struct_size;
  const char* name;
  const int64_t* shape;
  const int64_t* strides; /* in elements; NULL: contiguous, row-major */
  uint32_t rank;
  int32_t dtype;
  uint32_t segment;
  uint64_t offset;        /* multiple of 512, or inside another tensor (a view) */
  int32_t kind;           /* WC_PARAMETER, WC_BUFFER */
  uint32_t flags;         /* WC_TENSOR_* */
} wc_tensor_description;
/* Two tensors may share bytes. Errors: WC_INVALID_ARGUMENT (out of its segment, name taken...). */
WC_API int wc_publication_tensor(wc_publication* publication, const wc_tensor_description* tensor);
/* `attribute->data` is copied. The path need not exist yet. */
WC_API int wc_publication_attribute(wc_publication* publication, const wc_attribute* attribute);
/* Tells those who wait. */
WC_API int wc_publication_progress(wc_publication* publication, uint64_t done_bytes,
                                   uint64_t total_bytes);
/* The one atomic step. What was written can be read at its address until wc_publication_free, and
 * not be written any more. After an error nothing is published; the publication is over either way
 * and must be freed. */
WC_API int wc_publication_publish(wc_publication* publication, wc_load_result** out);
/* Frees it; not published, it is abandoned and its memory given back. */
WC_API void wc_publication_free(wc_publication* publication);

/* The digest (32 hexadecimal digits) of a fingerprint document, into 33 bytes. */
WC_API int wc_fingerprint(const char* document, char out[33]);

/* Whether sharing what an engine made of weights quantized in this way is known to be right:
 * `method` "" is unquantized, `config` the quantization configuration as JSON (NULL: none).
 * Publishing, and attaching to what was published, ask the same of every form but raw. Needs no
 * connection.
 * Errors: WC_UNSUPPORTED, naming the method, the place, the verified methods and the ways out. */
enum { WC_AT_PUBLISH = 0, WC_AT_ATTACH = 1 };
WC_API int wc_quantization_check(const char* method, const char* config, int place);
WC_API size_t wc_quantization_method_count(void);
/* Static texts: the method's name, and on which condition ("": none). */
WC_API int wc_quantization_method_at(size_t index, const char** name, const char** condition);

/* ---- operate --------------------------------------------------------------------------------- */

typedef struct wc_lease_info {
  size_t struct_size;
  uint64_t lease;
  const char* name;
  const char* form;
  const char* device;
  uint64_t generation;
  uint64_t bytes;
  uint32_t rank;
  const char* label;
  const char* command;
  const char* container; /* "" none, or unknown */
  int32_t pid;           /* in the daemon's PID namespace; 0: not visible there */
  uint32_t uid;
  int64_t since_unix_ns;
} wc_lease_info;
typedef struct wc_lease_list wc_lease_list;
WC_API int wc_leases(wc_connection* connection, const wc_selector* selector, wc_lease_list** out);
WC_API size_t wc_lease_list_count(const wc_lease_list* list);
WC_API int wc_lease_list_at(const wc_lease_list* list, size_t index, wc_lease_info* out);
WC_API void wc_lease_list_free(wc_lease_list* list);

typedef struct wc_device_status {
  size_t struct_size;
  const char* device;
  uint64_t bytes;        /* resident */
  uint64_t budget_bytes;
  uint64_t loading_bytes;
  uint64_t releasing_bytes;
  uint64_t total_bytes;  /* of the device; 0: unknown here (a GPU, and no NVML) */
  uint64_t used_bytes;   /* of them, by everybody */
} wc_device_status;
typedef struct wc_status_info {
  size_t struct_size;
  const char* epoch;
  const char* software;
  int32_t pid;
  uint64_t uptime_ns;
  uint64_t rss_bytes; /* the daemon's own anonymous memory */
  uint64_t entries;
  uint64_t leases;
  uint64_t connections;
  size_t devices;
} wc_status_info;
typedef struct wc_status wc_status;
WC_API int wc_status_get(wc_connection* connection, wc_status** out);
WC_API int wc_status_read(const wc_status* status, wc_status_info* out);
WC_API int wc_status_device_at(const wc_status* status, size_t index, wc_device_status* out);
WC_API void wc_status_free(wc_status* status);

typedef struct wc_evicted {
  size_t struct_size;
  uint64_t entries;
  uint64_t bytes;
  uint64_t leases; /* readers that keep the memory until they detach */
} wc_evicted;
/* Drops entries. Errors: WC_NOT_FOUND, WC_BUSY (pinned or loading, without `force`). */
WC_API int wc_evict(wc_connection* connection, const wc_selector* selector, int force,
                    wc_evicted* out);
WC_API int wc_pin(wc_connection* connection, const wc_selector* selector, int pinned);
/* Refuses new leases and waits until none is left; `undo` ends that. Without options, or with a
 * wait_ns of 0, it waits without limit. Errors: WC_TIMED_OUT (it stays draining). */
WC_API int wc_drain(wc_connection* connection, const wc_selector* selector, int undo,
                    const wc_wait_options* options);
/* Ends the daemon. With `drop` the memory is given back; without, it is kept where something keeps
 * it (a supervisor, readers). Both numbers say what happens. */
WC_API int wc_stop(wc_connection* connection, int drop, uint64_t* kept_bytes,
                   uint64_t* dropped_bytes);

/* ---- doctor ---------------------------------------------------------------------------------- */

/* A warning costs speed or will surprise; a problem means that something does not work. */
enum { WC_SEVERITY_OK = 0, WC_SEVERITY_WARNING = 1, WC_SEVERITY_PROBLEM = 2 };
/* "ok", "warning", "problem". Static; "unknown" for a number that is none. */
WC_API const char* wc_severity_name(int severity);

typedef struct wc_finding {
  size_t struct_size;
  const char* area;   /* "driver", "gpu", "transport", "limits", "memory", "kernel", "container",
                         "daemon" */
  const char* check;  /* "persistence_mode": stable, for scripts */
  const char* device; /* the UUID that it is about; "" the machine */
  int32_t severity;   /* WC_SEVERITY_* */
  const char* text;   /* what is so */
  const char* advice; /* what to change; "" nothing */
} wc_finding;
typedef struct wc_gpu_info {
  size_t struct_size;
  const char* device;       /* its UUID */
  const char* name;
  int32_t ordinal;          /* this process's; -1: hidden from it */
  int32_t persistence_mode; /* 1 on, 0 off, -1 unknown */
  int32_t mig_mode;
  int32_t used_known;       /* 0: used_bytes says nothing */
  uint64_t total_bytes;
  uint64_t used_bytes;      /* by everybody */
} wc_gpu_info;
typedef struct wc_diagnosis wc_diagnosis;
/* Looks at this machine, from this process: driver, GPUs, transports, limits, memory, kernel,
 * container, daemon. `options` (as of wc_connect, may be NULL) says how the daemon is reached; that
 * none is there is a finding, no error. Makes no CUDA context; takes a second or less. */
WC_API int wc_doctor(const wc_connect_options* options, wc_diagnosis** out);
WC_API size_t wc_diagnosis_count(const wc_diagnosis* diagnosis);
/* Views into the diagnosis. Errors: WC_INVALID_ARGUMENT (index). */
WC_API int wc_diagnosis_at(const wc_diagnosis* diagnosis, size_t index, wc_finding* out);
/* Every GPU of the machine that can be known of, also those that this process can't use. */
WC_API size_t wc_diagnosis_gpu_count(const wc_diagnosis* diagnosis);
WC_API int wc_diagnosis_gpu_at(const wc_diagnosis* diagnosis, size_t index, wc_gpu_info* out);
WC_API void wc_diagnosis_free(wc_diagnosis* diagnosis);

/* ---- checkpoints on disk --------------------------------------------------------------------- */

typedef struct wc_checkpoint wc_checkpoint;
typedef struct wc_checkpoint_options {
  size_t struct_size;
  int32_t compat;
  int32_t allow_trailing;
  int32_t follow_symlinks;
} wc_checkpoint_options;
#define WC_CHECKPOINT_OPTIONS_INIT {sizeof(wc_checkpoint_options), 0, 0, 0}

/* Opens and checks every header; needs no daemon. Errors: as wc_load. */
WC_API int wc_checkpoint_open(const char* source, const wc_checkpoint_options* options,
                              wc_checkpoint** out);
WC_API void wc_checkpoint_free(wc_checkpoint* checkpoint);
typedef struct wc_checkpoint_info {
  size_t struct_size;
  const char* directory;
  const char* default_name;
  size_t files;
  size_t tensors;
  uint64_t file_bytes;
  uint64_t tensor_bytes;
  uint64_t passed_over; /* tensors of the files that the index leaves out */
} wc_checkpoint_info;
WC_API int wc_checkpoint_read(const wc_checkpoint* checkpoint, wc_checkpoint_info* out);
typedef struct wc_file_tensor {
  size_t struct_size;
  const char* name; /* name_bytes long, NOT terminated by a zero */
  size_t name_bytes;
  const int64_t* shape;
  uint32_t rank;
  int32_t dtype;
  const char* file;
  uint64_t offset; /* in the file */
  uint64_t bytes;
} wc_file_tensor;
WC_API int wc_checkpoint_tensor_at(const wc_checkpoint* checkpoint, size_t index,
                                   wc_file_tensor* out);
WC_API int wc_checkpoint_file_at(const wc_checkpoint* checkpoint, size_t index, const char** name,
                                 uint64_t* bytes);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* WEIGHTCACHE_WEIGHTCACHE_H_ */
