// swift-tools-version: 6.2
import PackageDescription

// A target exists only to enforce a dependency rule, or for a separate audience or platform. Everything else is a folder.
// `scripts/check` builds with explicit import checking, which rejects forbidden imports.
let settings: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

// Per-packet code is optimized in debug builds too, because `make run` carries calls and the tests send a million packets.
// Release builds do not check for overlapping accesses (exclusivity), because that would take a fifth of the router's
// time. The tests run with these checks.
let packetSettings =
    settings + [
        // Whole-module optimization reads each file only once, and takes two thirds of the time.
        .unsafeFlags(["-O", "-whole-module-optimization", "-num-threads", "2"], .when(configuration: .debug)),
        .unsafeFlags(["-enforce-exclusivity=unchecked"], .when(configuration: .release)),
    ]

let package = Package(
    name: "confab",
    platforms: [.macOS(.v15), .iOS(.v17)],
    products: [
        .executable(name: "confab", targets: ["Command"]),
        .library(name: "AppModel", targets: ["AppModel"]),
        .library(name: "Confab", targets: ["Confab"]),
        .library(name: "ConfabHeadless", targets: ["ConfabHeadless"]),
        .library(name: "ConfabUI", targets: ["ConfabUI"]),
        .library(name: "OpenTokCompat", targets: ["OpenTokCompat"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-asn1", from: "1.7.0"),
        .package(url: "https://github.com/apple/swift-certificates", from: "1.21.0"),
        .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-configuration", from: "1.4.0", traits: ["YAML"]),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.0"),
        .package(url: "https://github.com/apple/swift-distributed-tracing", from: "1.7.2"),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
        // 2.100 is the first version that limits headers (CVE-2026-28980).
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.0"),
        .package(url: "https://github.com/apple/swift-nio-extras", from: "1.35.0"),
        .package(url: "https://github.com/apple/swift-nio-http2", from: "1.46.0"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.0"),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        // Only one trait: with two, SwiftPM 6.3 passes their flags in an order that changes between builds, and rebuilds
        // Hummingbird and everything that depends on it. The other trait, ConfigurationSupport, is not needed.
        .package(
            url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.0", traits: ["FullFoundation"]
        ),
        .package(url: "https://github.com/jpsim/Yams", from: "6.2.0"),
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    ],
    targets: [
        .target(name: "Wire", swiftSettings: settings),
        // The SDK. On Apple platforms, it uses URLSession instead of NIO.
        .target(
            name: "Confab",
            dependencies: [
                "Wire",
                .product(name: "NIOCore", package: "swift-nio", condition: .when(platforms: [.linux])),
                .product(name: "NIOHTTP1", package: "swift-nio", condition: .when(platforms: [.linux])),
                .product(name: "NIOPosix", package: "swift-nio", condition: .when(platforms: [.linux])),
                .product(name: "NIOSSL", package: "swift-nio-ssl", condition: .when(platforms: [.linux])),
                .product(name: "NIOWebSocket", package: "swift-nio", condition: .when(platforms: [.linux])),
            ],
            swiftSettings: settings
        ),
        // Views of the SDK for SwiftUI. Empty on Linux, where `scripts/check-ios` compiles it.
        .target(name: "ConfabUI", dependencies: ["Confab"], swiftSettings: settings),
        // The SDK with the API of OpenTok's SDK for iOS, so that code written for that SDK compiles.
        .target(name: "OpenTokCompat", dependencies: ["Confab", "ConfabUI"], swiftSettings: settings),
        // The rules of a cluster: which node lives, and where each state machine is. It has no I/O.
        .target(name: "Cluster", swiftSettings: settings),
        .target(
            name: "Signaling",
            dependencies: [
                "Cluster", "Wire",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "CryptoExtras", package: "swift-crypto"),
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "HeapModule", package: "swift-collections"),
            ],
            swiftSettings: settings
        ),
        // DTLS and the ciphers of SRTP. Only `RTC` uses it.
        .systemLibrary(name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
        .target(name: "RTC", dependencies: ["COpenSSL"], swiftSettings: packetSettings),
        .target(name: "SFU", dependencies: ["RTC"], swiftSettings: packetSettings),
        // Linux system calls for many datagrams at once, which Swift's Glibc module lacks.
        .target(name: "CSockets"),
        // Child processes with limits.
        .target(name: "CSpawn"),
        // The functions of libpq that storage uses, loaded at run time.
        .target(name: "CPostgres"),
        // UDP sockets that send and receive many packets per system call. Shared by the server and the headless clients,
        // which must not import each other.
        .target(name: "Datagrams", dependencies: ["CSockets", "RTC"], swiftSettings: packetSettings),
        // Where streams are drawn: in a composed recording, in a broadcast, and in a room of the app. It has no I/O.
        .target(name: "Layout", swiftSettings: settings),
        .testTarget(name: "LayoutTests", dependencies: ["Layout", "TestSupport"], swiftSettings: settings),
        // Media files, and the frames in them. Shared by the server's recordings and by the headless clients, which must not
        // import each other.
        .target(name: "MediaFiles", dependencies: ["RTC", "Wire"], swiftSettings: packetSettings),
        // Composes recordings: what has to be done as a pure function, and the processes that do it.
        .target(name: "Composing", dependencies: ["CSpawn", "Layout", "MediaFiles", "Wire"], swiftSettings: settings),
        .testTarget(
            name: "ComposingTests", dependencies: ["Composing", "Layout", "MediaFiles", "TestSupport", "Wire"],
            swiftSettings: settings
        ),
        // Composes broadcasts while they run: the messages between the server and the compositor, and the rules. `Compositor/`, a
        // package of its own, compiles it without the rest, and connects it with FFmpeg's libraries. It has no I/O.
        .target(name: "LiveComposing", dependencies: ["Layout", "Wire"], swiftSettings: settings),
        .testTarget(
            name: "LiveComposingTests", dependencies: ["Layout", "LiveComposing", "TestSupport"],
            swiftSettings: settings
        ),
        // Broadcasts over HLS and RTMP: segments, playlists and targets as pure machines, and the shells around them (`Shell/`).
        .target(
            name: "Broadcasting",
            dependencies: [
                "Composing", "Layout", "LiveComposing", "MediaFiles", "Wire",
                .product(name: "DequeModule", package: "swift-collections"),
            ],
            swiftSettings: settings),
        .testTarget(
            name: "BroadcastingTests",
            dependencies: ["Broadcasting", "Composing", "LiveComposing", "MediaFiles", "TestSupport", "Wire"],
            swiftSettings: settings
        ),
        // Peer connections without a browser. Shared by the SDK's engine for Linux, which must not contain a
        // client, and by the headless clients.
        .target(
            name: "Peers", dependencies: ["CSockets", "Datagrams", "MediaFiles", "RTC"], swiftSettings: packetSettings),
        // The SDK's media engine for Linux, which sends files and receives encoded frames.
        .target(
            name: "ConfabHeadless", dependencies: ["Confab", "MediaFiles", "Peers", "RTC"],
            swiftSettings: packetSettings
        ),
        // Headless clients: the bot, which uses the SDK, and the load generator, whose client does only what a load test needs.
        // They use only interfaces that any client can use.
        .target(
            name: "Robots",
            dependencies: [
                "Confab", "ConfabHeadless", "Datagrams", "MediaFiles", "Peers", "RTC", "Wire",
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ],
            // The sample media that the bot publishes by default, embedded in the executable.
            resources: [.embedInCode("Sample/picture.ivf"), .embedInCode("Sample/sound.ogg")],
            swiftSettings: packetSettings
        ),
        // A client for Redis and Valkey, for clusters. It knows nothing of the server.
        .target(
            name: "Redis",
            dependencies: [
                "Wire",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
            ],
            swiftSettings: settings
        ),
        .target(
            name: "Server",
            dependencies: [
                "Broadcasting", "CPostgres", "CSockets", "Cluster", "Composing", "Datagrams", "Layout",
                "LiveComposing", "MediaFiles", "RTC", "Redis", "SFU", "Signaling", "Wire",
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "Configuration", package: "swift-configuration"),
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "HeapModule", package: "swift-collections"),
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "HummingbirdCore", package: "hummingbird"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "CoreMetrics", package: "swift-metrics"),
                .product(name: "Metrics", package: "swift-metrics"),
                .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOHTTPTypes", package: "swift-nio-extras"),
                .product(name: "NIOHTTPTypesHTTP1", package: "swift-nio-extras"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "NIOTLS", package: "swift-nio"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "SwiftASN1", package: "swift-asn1"),
                .product(name: "Tracing", package: "swift-distributed-tracing"),
                .product(name: "UnixSignals", package: "swift-service-lifecycle"),
                .product(name: "X509", package: "swift-certificates"),
                .product(name: "Yams", package: "Yams"),
            ],
            swiftSettings: settings,
            plugins: ["EmbedWeb"]
        ),
        // Not named like its product: file names on macOS are case-insensitive, so it would collide with the module `Confab`.
        .executableTarget(
            name: "Command",
            dependencies: [
                "Composing", "Datagrams", "Layout", "MediaFiles", "Peers", "RTC", "Robots", "Server", "Signaling",
                "Wire",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: settings
        ),
        // Few dependencies, because a change in any of them rebuilds all tests.
        .target(
            name: "TestSupport",
            dependencies: [
                "CSpawn", "Cluster", "RTC", .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "CryptoExtras", package: "swift-crypto"),
            ],
            swiftSettings: settings
        ),
        // Compiles the web files into the executable, so that it needs no other files.
        .executableTarget(name: "EmbedTool", swiftSettings: settings),
        .plugin(name: "EmbedWeb", capability: .buildTool(), dependencies: ["EmbedTool"]),
        // The screens and calls of the iOS app without SwiftUI and CallKit, so that they can be tested on Linux.
        .target(name: "AppModel", dependencies: ["Confab", "Layout", "Wire"], swiftSettings: settings),
        .testTarget(
            name: "AppModelTests", dependencies: ["AppModel", "Confab", "TestSupport", "Wire"], exclude: ["Screens"],
            swiftSettings: settings
        ),
        // The model of the app with a simulated device, which the browser tests start and call.
        .executableTarget(
            name: "AppHost", dependencies: ["AppModel", "Confab", "ConfabHeadless"], path: "Tests/AppHost",
            swiftSettings: settings
        ),
        .testTarget(name: "WireTests", dependencies: ["Wire", "TestSupport"], swiftSettings: settings),
        .testTarget(
            name: "ConfabTests", dependencies: ["Confab", "TestSupport", "Wire"], swiftSettings: settings
        ),
        .testTarget(
            name: "OpenTokCompatTests", dependencies: ["Confab", "OpenTokCompat", "Wire"], swiftSettings: settings
        ),
        .testTarget(
            name: "ConfabHeadlessTests",
            dependencies: ["Confab", "ConfabHeadless", "MediaFiles", "Peers", "RTC", "TestSupport"],
            swiftSettings: settings
        ),
        .testTarget(
            name: "SignalingTests",
            dependencies: [
                "CAllocations", "Cluster", "Signaling", "Wire", "TestSupport",
                .product(name: "Crypto", package: "swift-crypto"),
            ],
            swiftSettings: settings
        ),
        // Another implementation of SRTP, for comparison with Confab's.
        .systemLibrary(name: "CSRTP", path: "Tests/CSRTP", providers: [.apt(["libsrtp2-dev"])]),
        .testTarget(
            name: "RTCTests", dependencies: ["COpenSSL", "CSRTP", "RTC", "TestSupport"], exclude: ["Offers"],
            swiftSettings: settings
        ),
        // Counts the allocations of a thread.
        .target(name: "CAllocations", path: "Tests/CAllocations"),
        .testTarget(
            name: "SFUTests", dependencies: ["CAllocations", "RTC", "SFU", "TestSupport"], exclude: ["Traces"],
            swiftSettings: settings
        ),
        .testTarget(
            name: "MediaFilesTests", dependencies: ["MediaFiles", "RTC", "TestSupport", "Wire"], swiftSettings: settings
        ),
        .testTarget(
            name: "RobotsTests",
            dependencies: [
                "ConfabHeadless", "Datagrams", "MediaFiles", "Peers", "RTC", "Robots", "SFU", "Wire", "TestSupport",
            ],
            swiftSettings: settings
        ),
        .testTarget(name: "ClusterTests", dependencies: ["Cluster", "TestSupport"], swiftSettings: settings),
        .testTarget(
            name: "RedisTests",
            dependencies: [
                "Redis", "TestSupport", "Wire",
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
            ],
            swiftSettings: settings
        ),
        .testTarget(
            name: "ServerTests",
            dependencies: [
                "Broadcasting", "CAllocations", "CSockets", "Cluster", "Composing", "Confab", "Datagrams",
                "LiveComposing", "MediaFiles", "RTC", "Redis", "SFU", "Server", "Signaling",
                "TestSupport", "Wire",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "HummingbirdCore", package: "hummingbird"),
                .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOHTTP2", package: "swift-nio-http2"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "NIOTLS", package: "swift-nio"),
                .product(name: "NIOWebSocket", package: "swift-nio"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics"),
                .product(name: "CoreMetrics", package: "swift-metrics"),
                .product(name: "SwiftASN1", package: "swift-asn1"),
                .product(name: "X509", package: "swift-certificates"),
            ],
            swiftSettings: settings
        ),
        // The SDK and the app's model against a complete server in the same process.
        .testTarget(
            name: "EndToEndTests",
            dependencies: [
                "AppModel", "Broadcasting", "Confab", "ConfabHeadless", "LiveComposing", "MediaFiles", "OpenTokCompat",
                "Peers", "RTC", "Robots", "SFU", "Server", "Signaling", "TestSupport", "Wire",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: settings
        ),
        // Replays saved fuzzer inputs through the fuzzed functions. `Targets` is a link to these.
        .testTarget(
            name: "FuzzTests",
            dependencies: [
                "Broadcasting", "Cluster", "Layout", "LiveComposing", "MediaFiles", "RTC", "Redis", "SFU", "Server",
                "Signaling", "TestSupport", "Wire",
            ],
            swiftSettings: settings
        ),
        // Attacks on the executable through raw sockets, without the server's own code, which might share its bugs.
        .testTarget(
            name: "HostileTests",
            dependencies: [
                "RTC", "Signaling", "TestSupport", "Wire", .product(name: "Crypto", package: "swift-crypto"),
            ],
            swiftSettings: settings
        ),
    ]
)
