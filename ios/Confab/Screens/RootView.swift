import AppModel
import Foundation
import SwiftUI

/// The root view: the connection bar, calls, and the current screen below them.
struct RootView: View {
    let app: ApplicationModel
    @Environment(\.scenePhase) private var phase

    var body: some View {
        VStack(spacing: 0) {
            ConnectionBar(app: app)
            if app.calls.showsIncoming { IncomingCallView(calls: app.calls) }
            EndedCallView(calls: app.calls)
            StageView(app: app)
        }
        .tint(.accentColor)
        .onOpenURL { app.open($0) }
        .onContinueUserActivity(ApplicationModel.recentCallActivity) { app.callBack($0) }
        .onChange(of: phase, initial: true) { _, phase in app.phaseChanged(to: AppPhase(phase)) }
    }
}

extension AppPhase {
    fileprivate init(_ phase: ScenePhase) {
        switch phase {
        case .active: self = .active
        case .inactive: self = .inactive
        case .background: self = .background
        @unknown default: self = .inactive
        }
    }
}

/// The state of the connection. Hidden while connected, and before the app connects.
struct ConnectionBar: View {
    let app: ApplicationModel

    var body: some View {
        if !app.connectionText.isEmpty {
            HStack {
                Text(app.connectionText).font(.footnote)
                if app.offersRetry { Button("Retry") { app.retry() }.buttonStyle(.bordered) }
            }
            .padding(.horizontal)
            .padding(.vertical, 4)
            .frame(maxWidth: .infinity)
            .background(.regularMaterial)
            .accessibilityElement(children: .contain)
        }
    }
}

/// The current screen: the call, the welcome screen, the form about the user, or the tabs.
struct StageView: View {
    let app: ApplicationModel

    var body: some View {
        switch app.shown {
        case .call: CallView(calls: app.calls)
        case .welcome: WelcomeView(model: app.welcome)
        case .aboutYou(let model): AboutYouView(model: model)
        case .home: HomeView(app: app)
        }
    }
}

/// The tab bar and its screens.
struct HomeView: View {
    @Bindable var app: ApplicationModel

    var body: some View {
        TabView(selection: $app.tab) {
            ForEach(app.tabs, id: \.self) { tab in
                NavigationStack { TabContent(app: app, tab: tab) }
                    .tabItem { TabLabel(tab: tab) }
                    .badge(app.badge(of: tab))
                    .tag(tab)
            }
        }
    }
}

/// The screen of a tab.
private struct TabContent: View {
    let app: ApplicationModel
    let tab: ApplicationModel.Tab

    var body: some View {
        switch tab {
        #if ROULETTE
        case .roulette: RouletteScreen(model: app.roulette, permissions: app.permissions)
        #else
        // This variant of the app has no roulette tab.
        case .roulette: EmptyView()
        #endif
        case .nearby: NearbyView(model: app.nearby)
        case .people: PeopleView(model: app.people)
        case .room: RoomView(model: app.room)
        case .settings: SettingsView(model: app.settings)
        }
    }
}

/// The label of a tab.
private struct TabLabel: View {
    let tab: ApplicationModel.Tab

    var body: some View {
        switch tab {
        #if ROULETTE
        case .roulette: Label("Strangers", systemImage: "shuffle")
        #else
        case .roulette: EmptyView()
        #endif
        case .nearby: Label("Nearby", systemImage: "location")
        case .people: Label("People", systemImage: "person.2")
        case .room: Label("Room", systemImage: "rectangle.3.group")
        case .settings: Label("Settings", systemImage: "gearshape")
        }
    }
}
