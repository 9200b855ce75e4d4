import AppModel
import Confab
import Foundation
import SwiftUI
import UIKit

/// The people screen: contacts, past calls, and the page of one person.
struct PeopleView: View {
    @Bindable var model: PeopleModel

    var body: some View {
        List {
            Picker("Show", selection: $model.page) {
                Text("Contacts").tag(PeopleModel.Page.contacts)
                Text("Calls").tag(PeopleModel.Page.log)
                if model.hasPerson { Text("Person").tag(PeopleModel.Page.person) }
            }
            switch model.page {
            case .contacts: ContactsSection(model: model)
            case .log: LogSection(model: model)
            case .person: PersonSection(model: model)
            }
        }
        .confirmationDialog(model.questionText, isPresented: $model.asks, titleVisibility: .visible) {
            if let question = model.question {
                Button(question.actionText, role: .destructive) { model.confirm(question) }
            }
            Button("Cancel", role: .cancel) {}
        }
        .navigationTitle("People")
        .onAppear { model.load() }
        .refreshable { await model.load() }
    }
}

/// The error of the last request, with a retry button.
private struct PeopleTrouble: View {
    let model: PeopleModel

    var body: some View {
        ModelText(model.troubleText)
        if model.offersRetry { Button("Retry") { model.retry() } }
    }
}

/// The search for a person, and the contacts.
private struct ContactsSection: View {
    @Bindable var model: PeopleModel

    var body: some View {
        Section {
            HStack {
                TextField("Find by ID or link", text: $model.findText)
                    .textInputAutocapitalization(.never)
                    .autocorrectionDisabled()
                    .onSubmit { model.find() }
                Button("Find") { model.find() }.buttonStyle(.borderless).disabled(!model.canFind)
            }
            ModelText(model.searchText)
        }
        Section {
            PeopleTrouble(model: model)
            ModelText(model.contactsText)
            ForEach(model.contactRows) { row in
                Button(action: { model.open(row.id) }) { PersonRow(row: row) }
            }
        }
    }
}

/// The row of a contact or a past call.
private struct PersonRow<ID: Hashable & Sendable>: View {
    let row: ListRow<ID>

    var body: some View {
        VStack(alignment: .leading) {
            Text(row.title).foregroundStyle(row.isMissed ? Color.red : Color.accentColor)
            ModelText(row.detail).font(.caption).foregroundStyle(.secondary)
        }
        .accessibilityElement()
        .accessibilityLabel(row.accessibilityText)
    }
}

/// The past calls.
private struct LogSection: View {
    let model: PeopleModel

    var body: some View {
        Section {
            PeopleTrouble(model: model)
            ModelText(model.logText)
            ForEach(model.logRows) { row in
                Button(action: { model.callBack(row.id) }) { PersonRow(row: row) }
                    .swipeActions { Button("Delete", role: .destructive) { model.forget(row.id) } }
            }
            if model.hasMoreLog { Button("Earlier calls") { model.showEarlier() } }
            if model.offersDeleteAll { Button("Delete all calls", role: .destructive) { model.askToDeleteAllCalls() } }
        }
    }
}

/// The page of one person, with the available actions.
private struct PersonSection: View {
    let model: PeopleModel

    var body: some View {
        Section {
            Text(model.personName).font(.title2).accessibilityAddTraits(.isHeader)
            ModelText(model.personStatus)
            PeopleTrouble(model: model)
            Button("Call", systemImage: "video") { model.call(video: true) }.disabled(!model.canCall)
            Button("Voice call", systemImage: "phone") { model.call(video: false) }.disabled(!model.canCall)
            if model.isContact { Button("Remove from contacts", role: .destructive) { model.askToRemoveContact() } }
            Button(model.blockText, role: .destructive) { model.toggleBlock() }
        }
    }
}
