import Foundation
import HTTPTypes
import HummingbirdCore
import NIOCore
import Testing

@testable import Server

/// Which page is at which address.
@Suite struct WebFilesTests {
    @Test(arguments: [
        ("/", "app/front/index.html"), ("/strangers", "app/strangers/index.html"), ("/nearby", "app/nearby/index.html"),
        ("/rooms", "app/rooms/index.html"), ("/try", "app/try/index.html"), ("/room/tea", "app/room/index.html"),
        ("/check", "app/check/index.html"),
        ("/room/Tea%20at%205", "app/room/index.html"), ("/app/shared/style.css", "app/shared/style.css"),
        ("/sw.js", "app/sw.js"), ("/v2/js/opentok.min.js", "v2/js/opentok.min.js"),
    ])
    func everyPageHasAnAddress(path: String, file: String) {
        #expect(WebFiles.name(of: path, Feature.allCases) == file)
    }

    @Test(arguments: ["/room", "/room/", "/room/a/b", "/rooms/", "/none", "/strangers/", "//"])
    func otherAddressesHaveNone(path: String) {
        #expect(WebFiles.name(of: path, Feature.allCases) == nil)
    }

    @Test(arguments: [
        ("/rooms/", "../rooms"), ("/strangers/", "../strangers"), ("/try/", "../try"), ("/room/tea/", "../tea"),
        ("/check/", "../check"),
        ("/room/Tea%20at%205:30/", "../Tea%20at%205:30"),
    ])
    func aSlashAfterAnAddressLeadsToThePage(path: String, location: String) {
        #expect(WebFiles.redirection(path: path, query: nil, Feature.allCases) == location)
        #expect(WebFiles.redirection(path: path, query: "guest", Feature.allCases) == location + "?guest")
        #expect(WebFiles.redirection(path: String(path.dropLast()), query: nil, Feature.allCases) == nil)
    }

    /// In particular never to another site, as a location that begins with two slashes would.
    @Test(arguments: [
        "/", "//", "///", "//elsewhere.example/", "//rooms/", "/room/", "/room//", "/room/a/b/", "/none/", "/sw.js/",
        "/app/front/index.html/", "/lib/index.js/", "/tea//", "",
    ])
    func otherAddressesLeadNowhere(path: String) {
        #expect(WebFiles.redirection(path: path, query: nil, Feature.allCases) == nil)
        #expect(WebFiles.redirection(path: "/nearby/", query: nil, [.rooms]) == nil)
    }

    @Test(arguments: [
        ("/app/front/index.html", "../../"), ("/app/room/index.html", "../../rooms"),
        ("/app/try/index.html", "../../try"), ("/app/check/index.html", "../../check"),
        ("/app/strangers/index.html", "../../strangers"), ("/app/lan/index.html", "../../lan"),
        ("/app/none/index.html", nil),
        ("/app/front/front.css", nil), ("/app/index.html", nil), ("/strangers", nil), ("/app//index.html", nil),
    ])
    func theFileOfAPageLeadsToItsAddress(path: String, location: String?) {
        #expect(WebFiles.address(ofPageFile: path) == location)
    }

    @Test func aWayThatIsOffHasNoPage() {
        let features: [Feature] = [.rooms, .strangers]
        #expect(WebFiles.name(of: "/", features) == "app/front/index.html")
        #expect(WebFiles.name(of: "/nearby", features) == nil)
        #expect(WebFiles.name(of: "/app/nearby/index.html", features) == nil)
        #expect(WebFiles.name(of: "/app/nearby/main.js", features) == "app/nearby/main.js")
        #expect(WebFiles.name(of: "/room/tea", [.strangers, .nearby]) == nil)
        #expect(WebFiles.name(of: "/check", features) == "app/check/index.html")
    }

    @Test func thePageForTheLocalNetworkHasTheHeadersOfAllPages() throws {
        let headers = WebFiles().page("app/lan/index.html").headers
        #expect(headers[.xContentTypeOptions] == "nosniff")
        #expect(headers[try #require(HTTPField.Name("Referrer-Policy"))] == "no-referrer")
        #expect(headers[try #require(HTTPField.Name("X-Frame-Options"))] == "DENY")
        #expect(headers[.contentSecurityPolicy]?.contains("frame-ancestors 'none'") == true)
    }

    @Test(arguments: Feature.allCases)
    func theOnlyWayIsTheFrontPage(way: Feature) {
        let page = "app/\(way.rawValue)/index.html"
        #expect(WebFiles.name(of: "/", [way]) == page)
        #expect(WebFiles.name(of: "/" + way.rawValue, [way]) == page)
    }

    @Test func pagesSayWhichWaysAreOn() throws {
        let all = try #require(WebFiles().file("/"))
        #expect(String(buffer: all.body).contains("data-features=\"strangers nearby rooms\""))
        let some = try #require(WebFiles(features: [.rooms, .nearby]).file("/"))
        #expect(String(buffer: some.body).contains("data-features=\"rooms nearby\""))
        #expect(some.tag != all.tag)
    }

    @Test(arguments: [nil, "web"])
    func pagesContainTheFilesThatTheyInclude(directory: String?) throws {
        let root = URL(filePath: #filePath).resolvingSymlinksInPath().appending(path: "../../..").standardized
        let files = WebFiles(directory: directory.map { root.appending(path: $0).path })
        for (address, start) in [("/", ""), ("/room/tea", "../"), ("/try", ""), ("/check", "")] {
            let text = String(buffer: try #require(files.file(address)).body)
            #expect(text.contains("<head>\n  <meta charset=\"utf-8\">\n"))
            #expect(text.contains("<link rel=\"icon\" href=\"\(start)app/favicon.svg\""))
            #expect(!text.contains("include"))
        }
    }

    @Test func waysInAreReadFromTheConfiguration() throws {
        let setting = try #require(Setting.all.first { $0.key.name == "web.features" })
        var configuration = ConfabConfiguration()
        #expect(setting.text(configuration) == "strangers, nearby, rooms")
        for bad in [[], ["rooms", "rooms"], ["rooms", "cellar"]] as [[String]] {
            #expect(!setting.store(bad, &configuration))
        }
        #expect(setting.store(["rooms", "strangers"], &configuration))
        #expect(configuration.web.features == [.rooms, .strangers])
    }
}
