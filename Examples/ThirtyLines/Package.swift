// swift-tools-version: 6.2
import PackageDescription

// A separate package, like that of an application. It builds the SDK and its engine for Linux, but not the server.
let package = Package(
    name: "ThirtyLines",
    platforms: [.macOS(.v15)],
    // SwiftPM identifies a local package by the name of its folder, which can be any name. `name` makes it `confab`
    // here.
    dependencies: [.package(name: "confab", path: "../..")],
    targets: [
        .executableTarget(
            name: "ThirtyLines",
            dependencies: [
                .product(name: "Confab", package: "confab"), .product(name: "ConfabHeadless", package: "confab"),
            ],
            swiftSettings: [
                .enableUpcomingFeature("ExistentialAny"), .enableUpcomingFeature("MemberImportVisibility"),
            ]
        )
    ]
)
