import AppModel
import Confab
import Foundation
import SwiftUI

/// The list of people nearby, with call buttons in each row.
struct NearbyView: View {
    @Bindable var model: NearbyModel

    var body: some View {
        List {
            Section {
                ModelText(model.statusText)
                if model.offersShare { Button("Share my location") { model.share() } }
                if model.offersRetry { Button("Try again") { model.refresh() } }
                if model.offersSettings { SettingsButton() }
            } footer: {
                Text(model.privacyText)
            }
            if model.showsList { people }
            if model.isSharing { sharing }
        }
        .navigationTitle("Nearby")
        .refreshable { await model.refresh() }
    }

    @ViewBuilder private var people: some View {
        Section {
            Picker("Distance", selection: $model.radius) {
                ForEach(model.unit.edges, id: \.self) { Text(model.text(of: $0)).tag($0) }
            }
            ForEach(model.rows) { row in
                NearbyRow(row: row) { model.call(row.id, video: $0) }
            }
            Button("Refresh") { model.refresh() }
            if model.hasMore { Button("Farther away") { model.showFarther() } }
            if model.isLaterPage { Button("Closer") { model.showClosest() } }
        }
    }

    private var sharing: some View {
        Section {
            Toggle("Show me to people nearby", isOn: $model.isVisible)
            Toggle("Do not disturb", isOn: $model.doNotDisturb)
            Button("Stop sharing my location", role: .destructive) { model.stopSharing() }
        }
    }
}

/// A person nearby, with two call buttons.
private struct NearbyRow: View {
    let row: NearbyModel.Row
    let call: @MainActor (_ video: Bool) -> Void

    var body: some View {
        ViewThatFits {
            HStack {
                name
                Spacer()
                buttons
            }
            VStack(alignment: .leading) {
                name
                buttons
            }
        }
        .buttonStyle(.bordered)
        .accessibilityElement(children: .contain)
        .accessibilityLabel(row.accessibilityText)
    }

    private var name: some View {
        VStack(alignment: .leading) {
            Text(row.title)
            Text(row.detail).font(.caption).foregroundStyle(.secondary)
        }
    }

    @ViewBuilder private var buttons: some View {
        Button("Voice call", systemImage: "phone") { call(false) }.disabled(!row.canCall)
        Button("Call", systemImage: "video") { call(true) }.disabled(!row.canCall)
    }
}
